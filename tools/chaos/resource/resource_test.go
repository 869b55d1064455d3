package resource_test

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/chaos/resource"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

func TestResource(t *testing.T) {
	dir := t.TempDir()
	j, err := history.Create(dir, "writes")
	require.NoError(t, err)
	s, err := resource.Serve(j)
	require.NoError(t, err)
	require.Empty(t, s.Holder("a"))
	var conns []*resource.Conn
	for range 2 {
		c, err := resource.Dial(s.Addr())
		require.NoError(t, err)
		conns = append(conns, c)
	}
	for i, step := range []struct {
		lease, key string
		token      uint64
		accepted   bool
	}{
		{"c0.1/1", "a", 10, true},
		{"c1.1/1", "a", 10, true},
		{"c1.1/2", "a", 12, true},
		{"c0.1/1", "a", 11, false},
		{"c0.1/1", "a", 11, false}, // what was refused is forgotten
		{"c0.1/2", "b", 1, true},
		{"c1.1/2", "a", 12, true},
	} {
		accepted, err := conns[i%2].Write(step.lease, step.key, step.token)
		require.NoError(t, err)
		require.Equal(t, step.accepted, accepted, "step %d", i)
	}
	require.Equal(t, "c1.1/2", s.Holder("a"))
	require.Equal(t, "c0.1/2", s.Holder("b"))
	require.NoError(t, conns[0].Close())
	require.NoError(t, s.Close(), "ends the other connection")
	_, err = conns[1].Write("c1.1/2", "a", 13)
	require.Error(t, err)
	require.NoError(t, conns[1].Close())

	writes, err := history.Read[resource.Write](filepath.Join(dir, "writes"+history.Suffix))
	require.NoError(t, err)
	require.Len(t, writes, 7)
	require.False(t, writes[3].Accepted)
	require.Equal(t, "c0.1/1", writes[3].Lease)
	require.NotZero(t, writes[3].At)
}

// A client that is killed while it writes leaves part of a line: no write.
func TestPartOfALineIsNoWrite(t *testing.T) {
	j, err := history.Create(t.TempDir(), "writes")
	require.NoError(t, err)
	s, err := resource.Serve(j)
	require.NoError(t, err)
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	_, err = c.Write([]byte("c0.1/1 a 1"))
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	require.Error(t, err, "it hangs up without an answer")
	require.NoError(t, c.Close())
	require.Empty(t, s.Holder("a"))
	require.NoError(t, s.Close())
}

func TestJournalThatFailsIsReported(t *testing.T) {
	j, err := history.Create(t.TempDir(), "writes")
	require.NoError(t, err)
	require.NoError(t, j.Close())
	s, err := resource.Serve(j)
	require.NoError(t, err)
	c, err := resource.Dial(s.Addr())
	require.NoError(t, err)
	_, err = c.Write("c0.1/1", "a", 1)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.ErrorContains(t, s.Close(), "cannot append")
}
