package nemesis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/nemesis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fault takes a second.
type fault struct {
	name    string
	at      time.Duration
	targets []string
}

func (f fault) String() string        { return f.name }
func (f fault) Begins() time.Duration { return f.at }
func (f fault) Targets() []string     { return f.targets }

func TestFaultsOfATargetHappenInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, began := time.Now(), make(map[string]time.Duration)
		var out strings.Builder
		lock := make(chan struct{}, 1)
		err := nemesis.Run(t.Context(), &out, []fault{
			{"first", 0, []string{"a"}},
			{"other", 100 * time.Millisecond, []string{"b"}},
			{"both", 200 * time.Millisecond, []string{"a", "b"}},
			{"last", 300 * time.Millisecond, []string{"b"}},
			{"of nothing", 400 * time.Millisecond, nil},
		}, func(ctx context.Context, f fault, turns nemesis.Turns) error {
			defer turns.Take()()
			lock <- struct{}{}
			began[f.name] = time.Since(begun)
			<-lock
			clients.Sleep(ctx, time.Second)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, map[string]time.Duration{
			"first": 0, "other": 100 * time.Millisecond, "both": 1100 * time.Millisecond, "last": 2100 * time.Millisecond,
			"of nothing": 400 * time.Millisecond,
		}, began)
		require.Equal(t, "first\nother\nboth\nlast\nof nothing\n", out.String())
	})
}

func TestErrorEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		var out strings.Builder
		err := nemesis.Run(t.Context(), &out, []fault{{name: "one"}, {name: "two", at: time.Second}, {name: "three", at: time.Hour}},
			func(ctx context.Context, f fault, _ nemesis.Turns) error {
				if f.name == "two" {
					return broken
				}
				require.False(t, clients.Sleep(ctx, time.Minute), "it is put right at once")
				return nil
			})
		require.ErrorIs(t, err, broken)
		require.ErrorContains(t, err, "fault two")
		require.NotContains(t, out.String(), "three")
	})
}
