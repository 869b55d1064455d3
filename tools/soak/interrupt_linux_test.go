package main

import (
	"bytes"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// interrupter sends this process SIGINT once a text has been written to it.
type interrupter struct {
	bytes.Buffer
	at   string
	once sync.Once
}

func (i *interrupter) Write(p []byte) (int, error) {
	n, err := i.Buffer.Write(p)
	if bytes.Contains(i.Buffer.Bytes(), []byte(i.at)) {
		i.once.Do(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) })
	}
	return n, err
}

func TestInterruptEndsInOrder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	out := &interrupter{at: "faults for"}
	code := soakMain([]string{"-duration", "10m", "-seed", "1"}, out)
	require.Equal(t, exitInterrupted, code, out.String())
	require.Contains(t, out.String(), "interrupted: no violation so far")
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}
