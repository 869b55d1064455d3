//go:build long

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/cmd/tenure/internal/doctor"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
)

// What replicas said before they were killed, or before a node voted for them, is no warning. What
// one goes on to say is.
func TestDoctorBelievesFreshCardsOnly(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	q := use(t, f.URLs())
	say := func(replica string) {
		text := fmt.Sprintf(`{"v":1,"process":%q,"identity":%[1]q,"nodes":[{"node":%q,"votes":false,"why":"quarantined"}]}`, replica, f.Node(1).Addr())
		require.NoError(t, board.Of(q).Post(t.Context(), []bulletin.Card{{Kind: bulletin.Processes, ID: replica, Text: text, Lifetime: bulletin.ProcessLifetime}}))
	}
	for i := range 6 {
		say(fmt.Sprint("killed-", i))
	}
	done := make(chan called)
	go func() { done <- call(t, nodesAt(f.URLs()...), "doctor", "-o", "json", "--node-timeout", "1s") }()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		say("lives")
		select {
		case <-again.C:
			continue
		case got := <-done:
			var d doctorDocument
			require.NoError(t, json.Unmarshal([]byte(got.out), &d), "%s%s", got.out, got.err)
			require.Equal(t, 7, d.Replicas)
			d.Findings = slices.DeleteFunc(d.Findings, func(f doctor.Finding) bool { return f.Code != "seen_differently" })
			require.Len(t, d.Findings, 1, got.out)
			require.Contains(t, d.Findings[0].Seen, `"lives"`)
			return
		}
	}
}
