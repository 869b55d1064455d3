package redlock

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// BenchmarkPairParallelServers is what five servers and valkey-go can do of BenchmarkPairParallel's work: its packets, from one goroutine a node, one
// after the other, for nobody who waits for them. Each has as many acquisitions as releases of what the one before it acquired, together one for each of
// BenchmarkPairParallel's goroutines, more than its own have. It counts no votes.
func BenchmarkPairParallelServers(b *testing.B) {
	const half = 32
	fleet := valkeytest.Start(b, 5, valkeytest.WithAge(time.Hour))
	cfg, err := newConfig(nil)
	require.NoError(b, err)
	texts := cfg.texts()
	var groups [2][]*attempt
	for i := range 2 * half {
		keys, err := cfg.keyset("key" + strconv.Itoa(i))
		require.NoError(b, err)
		groups[i%2] = append(groups[i%2], &attempt{keys: &keys, owner: newOwner("bench"), cfg: cfg.lease})
	}
	b.ReportAllocs()
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
			release := &arguments{keep: "0", turn: texts.turn, channel: texts.channel}
			var words []string
			for i := 0; i*half < b.N; i++ {
				acquire := &arguments{ttl: texts.ttlText, hint: strconv.FormatInt(time.Now().UnixMicro(), 10), skew: texts.skew}
				var packet []*request
				for _, at := range groups[i%2] {
					packet = append(packet, &request{op: OpAcquire, attempt: at, args: acquire})
				}
				for _, at := range groups[(i+1)%2] {
					packet = append(packet, &request{op: OpRelease, attempt: at, args: release})
				}
				var command valkey.Completed
				command, words = parcel(client, anyProcess, packet, i == 0, "", words)
				for _, a := range open(packet, client.Do(b.Context(), command), 0, nil) {
					if a.err != nil || a.verdict != agreed && i > 0 {
						b.Errorf("packet %d: %v %v", i, a.verdict, a.err)
						return
					}
				}
			}
		})
	}
	nodes.Wait()
}
