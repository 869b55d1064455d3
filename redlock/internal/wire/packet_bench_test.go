package wire

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// BenchmarkPacket is what packets of acquisitions and releases cost a server: the time that it says
// it spends in their script, without what it takes to read a command and to write its answer.
func BenchmarkPacket(b *testing.B) {
	for _, pairs := range []int{1, 8, 32, 64} {
		b.Run(fmt.Sprint(pairs), func(b *testing.B) {
			n := valkeytest.Start(b, 1).Node(0)
			for _, s := range Scripts() {
				require.NoError(b, n.Client().Do(b.Context(), n.Client().B().ScriptLoad().Script(s.Text()).Build()).Error())
			}
			keys := make([]Keys, 2*pairs)
			owners := make([]string, len(keys))
			locks := make([]string, len(keys))
			for i := range keys {
				keys[i], owners[i] = NewKeys("tenure", fmt.Sprint("key", i)), NewOwner("a host of some length", "")
			}
			var buffers Buffers
			packet := func(i int) {
				hint := strconv.FormatInt(time.Now().UnixMicro(), 10)
				var calls []*Call
				for j := range pairs {
					k := 2*j + i%2
					locks[k] = benchLock(hint, owners[k])
					calls = append(calls, benchCall(&Call{Op: Acquire, Keys: &keys[k], TTL: "10000", Hint: hint, Skew: "2000000"}, locks[k]))
				}
				for j := range pairs {
					k := 2*j + (i+1)%2
					calls = append(calls, benchCall(&Call{Op: Release, Keys: &keys[k], Keep: "0", Turn: "1000", Channel: "call:"}, locks[k]))
				}
				if pairs == 1 {
					for i := range calls {
						for _, a := range Decode(calls[i:i+1], n.Client().Do(b.Context(), buffers.Encode(n.Client(), calls[i:i+1], vouched)), nil) {
							require.NoError(b, a.Err)
						}
					}
					return
				}
				for _, a := range Decode(calls, n.Client().Do(b.Context(), buffers.Encode(n.Client(), calls, vouched)), nil) {
					require.NoError(b, a.Err)
				}
			}
			packet(0)
			n.ResetStats(b)
			b.ResetTimer()
			for i := range b.N {
				packet(i + 1)
			}
			b.StopTimer()
			text, err := n.Do(b, "INFO", "commandstats").ToString()
			require.NoError(b, err)
			_, rest, _ := strings.Cut(text, "cmdstat_evalsha:calls=")
			_, rest, _ = strings.Cut(rest, "usec=")
			micros, err := strconv.ParseFloat(rest[:strings.Index(rest, ",")], 64)
			require.NoError(b, err)
			b.ReportMetric(micros/float64(b.N*pairs), "script-us/pair")
		})
	}
}

func benchLock(hint, owner string) string { return Lock(hint, owner) }

func benchCall(c *Call, lock string) *Call { c.Lock = lock; return c }
