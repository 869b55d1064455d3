package redlock_test

import (
	"context"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// own matches the stack of a goroutine that this library has started, and none of its test servers.
var own = regexp.MustCompile(`created by github\.com/tenure-dev/tenure/redlock(/internal/[a-z]+)?[.(]|created by sync\.\(\*WaitGroup\)\.Go`)

// goroutines returns the stacks of the library's goroutines.
func goroutines() (stacks []string) {
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	for _, stack := range strings.Split(string(text), "\n\n") {
		if own.MatchString(stack) && strings.Contains(stack, "tenure/redlock") && !strings.Contains(stack, "redlocktest") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// What docs/architecture.md says of goroutines: a writer a node and the extender, and a
// subscriber a node once something waits.
func TestGoroutinesOfAQuorum(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		alone(t, nodes, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet)
			requireRest := func(want int, when string) {
				t.Helper()
				time.Sleep(time.Second / 2)
				synctest.Wait()
				found := goroutines()
				require.Len(t, found, want, "%s: %s", when, strings.Join(found, "\n\n"))
			}
			requireRest(nodes+1, "at rest")
			l := acquire(t, q)
			requireRest(nodes+1, "with a lease")
			ctx, cancel := context.WithCancel(t.Context())
			waiting := make(chan struct{})
			go func() {
				defer close(waiting)
				_, _ = q.Acquire(ctx, "key")
			}()
			requireRest(2*nodes+1, "while something waits")
			cancel()
			<-waiting
			requireRest(2*nodes+1, "once something has waited")
			require.NoError(t, l.Release(t.Context()))
		})
	}
}
