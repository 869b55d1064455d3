package register_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

// Each holder adds its name to what it has read, whether its lease lives or not, on nodes that are
// frozen, and emptied one after the other. A name whose write has returned nil is in all that is
// read from then on, in its place.
func TestNoWriteThatStandsIsLost(t *testing.T) {
	for seed := range uint64(2) {
		bubble(t, 3, func(t *testing.T, f *fleet) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			stands := "" // guarded by mu; what the write has that has stood last
			stood, superseded := 0, 0
			check := func(before, value string, ballot uint64) {
				require.True(t, strings.HasPrefix(value, before), "seed %d, ballot %d: %q stood, and %q is read", seed, ballot, before, value)
			}
			done := make(chan struct{})
			var work sync.WaitGroup
			for i := range 4 {
				q := f.open()
				defer keeping(t, q, of(q))()
				pauses := make([]time.Duration, 400)
				for i := range pauses {
					pauses[i] = time.Duration(random.Int64N(int64(2 * time.Second)))
				}
				work.Go(func() {
					for n, pause := range pauses {
						select {
						case <-done:
							return
						case <-time.After(pause / 4):
						}
						l, err := q.TryAcquire(t.Context(), "key", redlock.WithTTL(time.Second), redlock.WithoutAutoExtend())
						if err != nil {
							continue
						}
						mu.Lock()
						before := stands
						mu.Unlock()
						turn, states, err := of(q).Begin(t.Context(), l)
						if err != nil {
							continue
						}
						check(before, string(states[0].Value), l.FencingToken())
						time.Sleep(pause) // its lease may be over
						value := fmt.Sprintf("%s%d.%d ", states[0].Value, i, n)
						err = turn.Write(t.Context(), []byte(value))
						mu.Lock()
						if err == nil {
							check(stands, value, l.FencingToken())
							stands = value
							stood++
						} else if errors.Is(err, register.ErrSuperseded) {
							superseded++
						}
						mu.Unlock()
						if l.Err() == nil {
							_ = l.Release(t.Context())
						}
					}
				})
			}
			for round := range 3 {
				node := int(random.Int64N(3))
				switch round % 3 {
				case 0:
					f.freeze(node)
					time.Sleep(3 * time.Second)
					f.thaw(node)
				case 1:
					f.restart(false, node)
					time.Sleep(2 * quarantine)
				case 2:
					f.Node(node).SetDelay(150 * time.Millisecond)
					time.Sleep(3 * time.Second)
					f.Node(node).SetDelay(0)
				}
				time.Sleep(2 * time.Second)
			}
			close(done)
			work.Wait()
			q := f.open()
			check(stands, string(read(t, q).Value), 0)
			require.Greater(t, stood, 10)
			require.Positive(t, superseded, "none was stale")
		})
	}
}
