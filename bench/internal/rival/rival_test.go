package rival_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 5 * time.Second

// open opens a rival until the end of the test.
func open(t *testing.T, k *rival.Kind, fleet *valkeytest.Fleet) rival.Rival {
	t.Helper()
	r, err := k.Open(rival.Config{URLs: fleet.URLs(), TTL: ttl})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// TestRivalsLock has every rival on Valkey lock a key against itself, wait for it, extend it and
// give it back.
func TestRivalsLock(t *testing.T) {
	fleet := valkeytest.Start(t, 5, valkeytest.WithAge(time.Hour))
	for _, k := range rival.All() {
		t.Run(k.Name, func(t *testing.T) {
			a, b := open(t, k, fleet), open(t, k, fleet)
			key := "key of " + k.Name
			held, err := a.Try(t.Context(), key)
			require.NoError(t, err)
			there := 0
			for _, n := range fleet.Nodes() {
				for _, name := range n.Keys(t) {
					if name == k.Key(key) {
						there++
					}
				}
			}
			if k.Servers == 1 {
				require.Equal(t, 1, there)
			} else {
				require.GreaterOrEqual(t, there, 3)
			}
			if w, ok := held.(rival.Watcher); ok {
				require.NoError(t, w.Err())
			}
			if k.ByHand {
				require.NoError(t, held.(rival.Extender).Extend(t.Context()))
			}
			if k == rival.Floor || k == rival.Batcher {
				_, err := b.Acquire(t.Context(), key)
				require.ErrorIs(t, err, rival.ErrCannotWait)
				require.NoError(t, held.Release(t.Context()))
				return
			}
			_, err = b.Try(t.Context(), key)
			require.Error(t, err, "it is held")
			got := make(chan error, 1)
			go func() {
				held, err := b.Acquire(context.Background(), key)
				if err == nil {
					err = held.Release(context.Background())
				}
				got <- err
			}()
			require.NoError(t, held.Release(t.Context()))
			require.NoError(t, <-got)
		})
	}
}

func TestFloorKeeps(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	r := open(t, rival.Floor, fleet)
	stop, err := r.(rival.Keeper).Keep(t.Context(), []string{"a", "b"}, 10*time.Millisecond)
	require.NoError(t, err)
	n := fleet.Node(0)
	n.ResetStats(t)
	require.Eventually(t, func() bool { return n.CommandStats(t)["pexpire"] >= 4 }, 10*time.Second, time.Millisecond)
	require.NoError(t, stop())

	require.NoError(t, n.Do(t, "SET", "c", "another's").Error())
	stop, err = r.(rival.Keeper).Keep(t.Context(), []string{"c"}, 10*time.Millisecond)
	require.NoError(t, err)
	n.ResetStats(t)
	require.Eventually(t, func() bool {
		stats := n.CommandStats(t)
		return stats["evalsha"]+stats["eval"] > 0
	}, 10*time.Second, time.Millisecond)
	require.ErrorContains(t, stop(), "lost a key")
}

// TestFloorsNeedAQuorum shows that errors are no replies.
func TestFloorsNeedAQuorum(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	for _, k := range []*rival.Kind{rival.Floor, rival.Batcher} {
		t.Run(k.Name, func(t *testing.T) {
			r := open(t, k, fleet)
			memory := func(most string, nodes ...int) { // a node that may have one byte refuses writes
				for _, i := range nodes {
					require.NoError(t, fleet.Node(i).Do(t, "CONFIG", "SET", "maxmemory", most).Error())
				}
			}
			memory("1", 0, 1)
			_, err := r.Try(t.Context(), k.Name)
			require.ErrorContains(t, err, "OOM")
			memory("0", 0, 1)
			memory("1", 2)
			_, err = r.Try(t.Context(), k.Name)
			require.NoError(t, err)
			memory("0", 2)
		})
	}
}

// TestBatcherLosesNothing has every caller get its answers, and every server all commands in order.
func TestBatcherLosesNothing(t *testing.T) {
	const callers = 50
	fleet := valkeytest.Start(t, 3)
	r, err := rival.Batcher.Open(rival.Config{URLs: fleet.URLs(), TTL: ttl})
	require.NoError(t, err)
	held := make(chan error, callers)
	for i := range callers {
		go func() {
			h, err := r.Try(t.Context(), strconv.Itoa(i))
			if err == nil {
				err = h.Release(t.Context())
			}
			held <- err
		}()
	}
	for range callers {
		require.NoError(t, <-held)
	}
	require.NoError(t, r.Close())
	for _, n := range fleet.Nodes() {
		stats := n.CommandStats(t)
		require.Equal(t, int64(callers), stats["set"])
		require.LessOrEqual(t, stats["evalsha"], int64(callers), "releases of a batch are one script")
		require.Empty(t, n.Keys(t), "one writer a node keeps an acquisition before its release")
	}
}

// TestFloorsHaveOneConnection as Tenure has for its commands: more make them slower.
func TestFloorsHaveOneConnection(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	for _, k := range []*rival.Kind{rival.Floor, rival.Batcher, rival.Redsync} {
		t.Run(k.Name, func(t *testing.T) {
			r := open(t, k, fleet)
			var wg sync.WaitGroup
			for i := range 64 {
				wg.Go(func() {
					h, err := r.Try(t.Context(), k.Name+strconv.Itoa(i))
					if assert.NoError(t, err) {
						assert.NoError(t, h.Release(t.Context()))
					}
				})
			}
			wg.Wait()
			for _, n := range fleet.Nodes() {
				clients, err := n.Do(t, "CLIENT", "LIST", "TYPE", "NORMAL").ToString()
				require.NoError(t, err)
				count := 0
				for line := range strings.Lines(clients) {
					if strings.Contains(line, "lib-name=valkey ") && !strings.Contains(line, "cmd=client|list") {
						count++
					}
				}
				require.Equal(t, 1, count, clients)
			}
		})
	}
}
