package redlock

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// BenchmarkPairParallelServers is what five servers and valkey-go can do of BenchmarkPairParallel's
// work: its commands, from one goroutine a node, one after the other, for nobody who waits for
// them. Each has as many acquisitions as releases of what the one before it acquired, together one
// for each of BenchmarkPairParallel's goroutines, more than its own have. It counts no votes.
func BenchmarkPairParallelServers(b *testing.B) {
	const half = 32
	fleet := valkeytest.Start(b, 5, valkeytest.WithAge(time.Hour))
	cfg, err := newConfig(nil)
	require.NoError(b, err)
	texts := cfg.texts()
	type lease struct {
		keys  wire.Keys
		owner string
	}
	var groups [2][]*lease
	for i := range 2 * half {
		keys, err := cfg.keys("key" + strconv.Itoa(i))
		require.NoError(b, err)
		groups[i%2] = append(groups[i%2], &lease{keys: keys, owner: wire.NewOwner("bench", "")})
	}
	b.ReportAllocs()
	before := serversCPU(b, fleet)
	b.ResetTimer()
	var nodes sync.WaitGroup
	for _, n := range fleet.Nodes() {
		nodes.Go(func() {
			client, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{n.Addr()}, ForceSingleClient: true, DisableCache: true})
			if err != nil {
				b.Error(err)
				return
			}
			defer client.Close()
			for _, s := range wire.Scripts() {
				if err := client.Do(b.Context(), client.B().ScriptLoad().Script(s.Text()).Build()).Error(); err != nil {
					b.Error(err)
					return
				}
			}
			var buffers wire.Buffers
			held := make(map[*lease]string)
			for i := 0; i*half < b.N; i++ {
				hint := strconv.FormatInt(time.Now().UnixMicro(), 10)
				var calls []*wire.Call
				for _, l := range groups[i%2] {
					held[l] = wire.Lock(hint, l.owner)
					calls = append(calls, &wire.Call{Op: wire.Acquire, Keys: &l.keys, Lock: held[l], TTL: texts.ttlText, Hint: hint, Skew: texts.skew})
				}
				for _, l := range groups[(i+1)%2] {
					calls = append(calls, &wire.Call{Op: wire.Release, Keys: &l.keys, Lock: held[l], Keep: "0", Turn: texts.turn, Channel: texts.channel})
				}
				command := buffers.Encode(client, calls, &wire.Target{Vouched: true})
				for _, a := range wire.Decode(calls, client.Do(b.Context(), command), nil) {
					if a.Err != nil || a.Verdict != wire.OK && i > 0 {
						b.Errorf("command %d: %v %v", i, a.Verdict, a.Err)
						return
					}
				}
			}
		})
	}
	nodes.Wait()
	b.ReportMetric(float64(serversCPU(b, fleet)-before)/1e3/5/float64(b.N), "server-us/pair")
}

// serversCPU is what the servers have used of the processors, in nanoseconds.
func serversCPU(b *testing.B, fleet *valkeytest.Fleet) (sum time.Duration) {
	b.Helper()
	for _, n := range fleet.Nodes() {
		text, err := n.Do(b, "INFO", "cpu").ToString()
		require.NoError(b, err)
		for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			_, rest, _ := strings.Cut(text, name)
			seconds, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			require.NoError(b, err)
			sum += time.Duration(seconds * 1e9)
		}
	}
	return sum
}
