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

// podAPI sets labels of pods through the API server.
type podAPI struct {
	base   string // URL of the API server
	token  string // file with the token; it is renewed, so it is read for each request
	client *http.Client
}

// set sets a label of a pod, or removes it if the value is empty.
func (a *podAPI) set(ctx context.Context, namespace, pod, label, value string) error {
	var is any // null removes the label
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

// keepLabel sets the label on this replica's pod while the replica leads, and removes it otherwise,
// also if an earlier process in this pod has left it. It returns after ctx has ended, when it has
// tried once more to remove the label.
func keepLabel(ctx context.Context, cfg *config, e *elector.Elector, log *slog.Logger) {
	for has, ended := "unknown", false; !ended; {
		value := ""
		if ended = ctx.Err() != nil; !ended && e.IsLeader(ctx) == nil {
			value = e.Election()
		}
		if value != has {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			err := cfg.api.set(limited, cfg.namespace, cfg.pod, cfg.label, value)
			cancel()
			if err == nil {
				has = value
			} else {
				log.Warn("the label of this pod cannot be set", "label", cfg.label, "value", value, "error", err)
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}
