package demo

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a demonstration with one replica and one node, which sends back what it gets.
func echo(t *testing.T) *Demo {
	t.Helper()
	d := New(Config{Replicas: 1, Hosts: []string{"echo"}, Dial: func(context.Context, int) (net.Conn, error) {
		outer, inner := net.Pipe()
		go func() {
			defer inner.Close()
			buffer := make([]byte, 64)
			for {
				n, err := inner.Read(buffer)
				if err != nil {
					return
				}
				if _, err := inner.Write(buffer[:n]); err != nil {
					return
				}
			}
		}()
		return outer, nil
	}})
	t.Cleanup(d.Close)
	return d
}

// connect is a replica's connection, and a channel that is closed when it has been served.
func connect(t *testing.T, d *Demo, greeting []byte) (net.Conn, <-chan struct{}) {
	t.Helper()
	replica, conn := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		d.Serve(conn)
	}()
	t.Cleanup(func() {
		_ = replica.Close()
		<-served
	})
	_, err := replica.Write(greeting)
	require.NoError(t, err)
	return replica, served
}

func TestLink(t *testing.T) {
	d := echo(t)
	conn, _ := connect(t, d, Greeting(0, 1))
	answer := make([]byte, 4)
	ask := func() error {
		if _, err := conn.Write([]byte("ping")); err != nil {
			return err
		}
		_, err := conn.Read(answer)
		return err
	}
	require.NoError(t, ask())

	require.NoError(t, d.Do(Order{Do: "partition", Replica: "a", Node: 1}))
	require.ErrorIs(t, d.Do(Order{Do: "partition", Replica: "a"}), ErrRefused, "it is cut")
	require.Equal(t, []int{1}, d.State().Replicas[0].Cut)
	require.Equal(t, []string{"a"}, d.State().Nodes[0].Cut)
	done := make(chan error, 1)
	go func() { done <- ask() }()
	select {
	case err := <-done:
		t.Fatalf("something passed a link that is cut: %v", err)
	case <-time.After(50 * time.Millisecond): // long enough for what would pass
	}
	require.NoError(t, d.Do(Order{Do: "heal", Node: 1}))
	require.NoError(t, <-done, "it was held, and came")
	require.Empty(t, d.State().Replicas[0].Cut)
}

// What comes over a link is checked before it is used.
func TestGreetings(t *testing.T) {
	d := echo(t)
	for _, greeting := range [][]byte{Greeting(1, 1), Greeting(0, 2), Greeting(200, 0)} {
		_, served := connect(t, d, greeting)
		<-served
	}
}

func TestStoreChecksWhatItReads(t *testing.T) {
	d := echo(t)
	conn, served := connect(t, d, Greeting(0, 0))
	_, err := conn.Write([]byte("no JSON\n"))
	require.NoError(t, err)
	<-served
}

func TestStore(t *testing.T) {
	d := echo(t)
	conn, _ := connect(t, d, Greeting(0, 0))
	ask := func(request string) string {
		_, err := conn.Write([]byte(request + "\n"))
		require.NoError(t, err)
		answer := make([]byte, 100)
		n, err := conn.Read(answer)
		require.NoError(t, err)
		return string(answer[:n])
	}
	require.Equal(t, `{"seen":7,"refused":false}`+"\n", ask(`{"do":"claim","token":7}`))
	require.Equal(t, `{"seen":7,"refused":false}`+"\n", ask(`{"do":"put","token":7}`))
	require.Equal(t, `{"seen":7,"refused":true}`+"\n", ask(`{"do":"put","token":6}`), "a later holder was there")
	require.Equal(t, Counters{Refused: 1}, d.State().Counters)

	require.NoError(t, d.Do(Order{Do: "switch", Name: "fence"}))
	require.Equal(t, `{"seen":7,"refused":false}`+"\n", ask(`{"do":"put","token":6}`), "nobody compares")
	require.Equal(t, Counters{Refused: 1, Accepted: 1}, d.State().Counters)
}

func TestOrdersThatMakeNoSense(t *testing.T) {
	d := echo(t)
	for text, o := range map[string]Order{
		`there is no order "explode"`:         {Do: "explode"},
		`there is no order ""`:                {},
		`there is no order "jump"`:            {Do: "jump", Node: 1, Seconds: 5}, // it is a real server
		`there is no order "speed"`:           {Do: "speed", Factor: 2},
		"there is no node 2, but 1 to 1":      {Do: "kill", Node: 2},
		"there is no node -1":                 {Do: "partition", Node: -1},
		`there is no replica "b"`:             {Do: "kill", Replica: "b"},
		"kill: name a replica or a node":      {Do: "kill"},
		"kill: name a replica or a node, not": {Do: "kill", Replica: "a", Node: 1},
		`there is no switch "light"`:          {Do: "switch", Name: "light"},
		"a is not running":                    {Do: "kill", Replica: "a"},
		"a is dead":                           {Do: "freeze", Replica: "a"},
		"a is not frozen":                     {Do: "thaw", Replica: "a"},
		"does not own; it can be partitioned": {Do: "kill", Node: 1},
		"nothing is changed by that":          {Do: "heal", Replica: "a"},
		"fencing tokens is so already":        {Do: "switch", Name: "fence", On: true},
	} {
		require.ErrorContains(t, d.Do(o), text)
	}
	d.Close()
	require.ErrorIs(t, d.Do(Order{Do: "mend"}), ErrRefused)
}
