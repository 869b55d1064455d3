package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/tenure-dev/tenure/elector"
)

// podAPI changes labels of pods.
type podAPI struct {
	base   string // URL of the API server
	token  string // file, which is renewed
	client *http.Client
}

// set gives the pod a label, or takes it off where the value is empty.
func (a *podAPI) set(ctx context.Context, namespace, pod, label, value string) error {
	var is any // null takes it off
	if value != "" {
		is = value
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{label: is}}})
	if err != nil {
		return err
	}
	token, err := os.ReadFile(a.token)
	if err != nil {
		return err
	}
	target := a.base + "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods/" + url.PathEscape(pod)
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+string(bytes.TrimSpace(token)))
	req.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be used again
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server answers %s", resp.Status)
	}
	return nil
}

// labels keeps the label on this replica's pod while it leads.
type labels struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// followLabel follows the elector until end; without LEADER_LABEL it does nothing.
func followLabel(cfg *config, e *elector.Elector, log *slog.Logger) *labels {
	ctx, cancel := context.WithCancel(context.Background())
	l := &labels{cancel, make(chan struct{})}
	if cfg.label == "" {
		close(l.ended)
		return l
	}
	wanted := make(chan string, 1)
	go func() {
		defer close(wanted)
		for change := range e.Changes(ctx) {
			value := ""
			if change.Kind == elector.Elected {
				value = e.Election()
			}
			select { // the latest counts
			case <-wanted:
			default:
			}
			wanted <- value
		}
	}()
	go func() {
		defer close(l.ended)
		// What an earlier process in this pod has left is taken off.
		for value, open := "", true; open; value, open = <-wanted {
			l.apply(ctx, cfg, value, wanted, log)
		}
	}()
	return l
}

// apply repeats until it succeeds, something else is wanted, or the process ends.
func (l *labels) apply(ctx context.Context, cfg *config, value string, wanted chan string, log *slog.Logger) {
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		err := cfg.api.set(limited, cfg.namespace, cfg.pod, cfg.label, value)
		cancel()
		if err == nil {
			return
		}
		log.Warn("the label of this pod cannot be set", "label", cfg.label, "value", value, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if len(wanted) > 0 {
			return
		}
	}
}

// end waits until the label is off, which is after the last term has ended.
func (l *labels) end() {
	l.cancel()
	<-l.ended
}
