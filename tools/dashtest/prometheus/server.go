package prometheus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tenure-dev/tenure/internal/child"
)

// ErrMissing says that there is no prometheus to run.
var ErrMissing = errors.New("prometheus: there is no prometheus in PATH; install it: " +
	"scripts/install-prometheus.sh, or the package prometheus of Debian or Ubuntu")

const (
	readyLimit = 30 * time.Second
	stopLimit  = 10 * time.Second
	poll       = 100 * time.Millisecond
)

// Server is a Prometheus that was started here.
type Server struct {
	Client
	process *child.Child
	output  *bytes.Buffer // of the process; to be read when it has ended
}

// Installed returns ErrMissing unless there is a prometheus to run.
func Installed() error {
	if _, err := exec.LookPath("prometheus"); err != nil {
		return ErrMissing
	}
	return nil
}

// Start starts a Prometheus with this configuration on a free port, and returns when it is ready.
// Everything that it keeps is below directory. The caller stops it.
func Start(ctx context.Context, directory string, config []byte) (*Server, error) {
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		return nil, ErrMissing
	}
	file := filepath.Join(directory, "prometheus.yml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Client: Client{URL: "http://" + address, HTTP: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}},
		output: new(bytes.Buffer),
	}
	cmd := exec.Command(binary,
		"--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(directory, "data"),
		"--web.listen-address="+address,
		"--log.level=warn")
	cmd.Stdout, cmd.Stderr = s.output, s.output
	if s.process, err = child.Start(cmd); err != nil {
		return nil, fmt.Errorf("prometheus: it cannot be started: %w", err)
	}
	if err := s.ready(ctx); err != nil {
		_ = s.Stop()
		return nil, fmt.Errorf("%w; it said:\n%s", err, s.output)
	}
	return s, nil
}

// freeAddress returns an address of the loopback interface that was free a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("prometheus: there is no free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/-/ready", nil)
		if err != nil {
			return fmt.Errorf("prometheus: %w", err)
		}
		if resp, err := s.HTTP.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.process.Exited():
			return errors.New("prometheus: it ended instead of getting ready")
		case <-ctx.Done():
			return fmt.Errorf("prometheus: it was not ready in time: %w", ctx.Err())
		case <-time.After(poll):
		}
	}
}

// Stop ends the process and waits for it. It may be called more than once.
func (s *Server) Stop() error {
	s.HTTP.CloseIdleConnections()
	if err := s.process.Terminate(stopLimit); s.process.Running() {
		return fmt.Errorf("prometheus: it cannot be ended: %w", err)
	}
	return nil
}
