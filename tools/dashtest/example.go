package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/internal/child"
)

const (
	killEvery    = 25 * time.Second
	restartEvery = 40 * time.Second
	listenLimit  = 45 * time.Second
	exampleStop  = 15 * time.Second
	poll         = 200 * time.Millisecond
)

// example is the program of examples/observability, which runs the replicas.
type example struct {
	process *child.Child
	targets string // the file with the replicas' addresses
	output  *bytes.Buffer
}

// startExample builds the program and starts it. It returns when all replicas serve their metrics.
func startExample(ctx context.Context, root, directory string, duration time.Duration) (*example, error) {
	binary := filepath.Join(directory, "observability")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./observability")
	build.Dir = filepath.Join(root, "examples")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("dashtest: the example cannot be built: %w\n%s", err, text)
	}
	e := &example{targets: filepath.Join(directory, "targets.json"), output: new(bytes.Buffer)}
	cmd := exec.Command(binary, "-replicas", strconv.Itoa(replicaCount), "-duration", duration.String(),
		"-metrics-port", "0", "-targets", e.targets,
		"-kill-leader-after", killEvery.String(), "-restart-node-after", restartEvery.String())
	cmd.Stdout, cmd.Stderr = e.output, e.output
	var err error
	if e.process, err = child.Start(cmd); err != nil {
		return nil, fmt.Errorf("dashtest: the example cannot be started: %w", err)
	}
	if err := e.listening(ctx); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

// listening waits for the file of targets.
func (e *example) listening(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	defer cancel()
	for {
		if _, err := os.Stat(e.targets); err == nil {
			return nil
		}
		select {
		case <-e.process.Exited():
			return fmt.Errorf("dashtest: the example ended before its replicas listened; it said:\n%s", e.output)
		case <-ctx.Done():
			return fmt.Errorf("dashtest: the example's replicas do not listen: %w", ctx.Err())
		case <-time.After(poll):
		}
	}
}

// stop ends the program, which ends its replicas, and waits for it.
func (e *example) stop() error {
	if err := e.process.Terminate(exampleStop); e.process.Running() {
		return fmt.Errorf("dashtest: the example cannot be ended: %w", err)
	}
	return nil
}
