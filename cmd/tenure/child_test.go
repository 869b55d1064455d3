package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A signal that comes between the grant of the lease and the start of the command leaves no
// directory behind.
func TestCommandThatIsNotBegunLeavesNothing(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	p := &program{err: &said}
	c := &child{ttl: time.Second, grace: 200 * time.Millisecond, path: "/bin/true", args: []string{"true"}}
	r := newRelay(func(error) {})
	defer r.stop()
	s := c.command(p, "key", 1, time.Now)
	require.DirExists(t, filepath.Dir(s.DeadlineFile))
	r.take(syscall.SIGTERM)
	_, err := r.runChild(t.Context(), s)
	require.ErrorIs(t, err, errNotBegun)
	_, err = os.Stat(filepath.Dir(s.DeadlineFile))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Empty(t, said.String())
}
