//go:build long

package wire

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// The script for many does what those for one do, or leaves it to them: the same to each key, and
// the same answer.
func TestPairsAreWhatSinglesAre(t *testing.T) {
	t.Parallel()
	fleet := valkeytest.Start(t, 2)
	single, packed := fleet.Node(0), fleet.Node(1)
	random := rand.New(rand.NewPCG(1, 2))
	seen := make(map[string]int)
	for round := range 300 {
		for _, n := range fleet.Nodes() {
			require.NoError(t, n.Do(t, "FLUSHALL").Error())
		}
		now := time.Now()
		ahead := []time.Duration{0, 0, time.Hour, -time.Hour}[random.IntN(4)]
		turn := "1000"
		if random.IntN(4) == 0 {
			turn = ""
		}
		var cases []*pairCase
		var packet []*Call
		quiet := random.IntN(2) == 0
		for i := range 2 + random.IntN(12) {
			c := drawPair(random, fmt.Sprintf("{key-%d}", i), quiet)
			if c.call.Op == Acquire {
				c.call.TTL = "60000"
				c.call.Lock = Lock(strconv.FormatInt(now.Add(ahead).UnixMicro()+random.Int64N(3), 10), "owner of "+c.call.Keys.Name)
			} else {
				c.call.Keep, c.call.Turn, c.call.Channel = "0", turn, "call:"
			}
			c.prepare(t, single, now)
			c.prepare(t, packed, now)
			cases, packet = append(cases, c), append(packet, c.call)
		}
		answers := Decode(packet, do(t, packed.Client(), vouched, packet...), nil)
		for i, c := range cases {
			seen[fmt.Sprintf("%s left %t", c.call.Op, answers[i].Alone)]++
			if answers[i].Alone {
				answers[i] = ask(t, packed.Client(), vouched, c.call)[0]
			}
			want, got := told(ask(t, single.Client(), vouched, c.call)[0]), told(answers[i])
			about := fmt.Sprintf("round %d, %s: lock %s, fence %s, queue %s, ahead %v, %+v", round, c.call.Op, c.lock, c.fence, c.queue, ahead, c.call)
			if c.call.Op == Release {
				want, got = strings.TrimSuffix(want, "server false"), strings.TrimSuffix(got, "server false")
			}
			require.Equal(t, want, got, about)
			if strings.HasPrefix(want, "error") {
				seen["error"]++ // the counter may have been raised, for nothing
				continue
			}
			seen[fmt.Sprintf("%s %s", c.call.Op, got[:1])]++
			require.Equal(t, c.state(t, single), c.state(t, packed), about)
		}
	}
	for _, kind := range []string{"error", "acquire 1", "acquire 2", "release 1", "release 2", "acquire left true", "acquire left false", "release left true", "release left false"} {
		require.Greater(t, seen[kind], 50, "%s: %v", kind, seen)
	}
}
