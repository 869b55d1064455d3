//go:build nightly

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/examples/internal/demo"
	"github.com/tenure-dev/tenure/examples/internal/demo/demotest"
	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/examples/internal/replicas/replicastest"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// site is a program with a page, which a test reads and gives orders to as a browser does.
type site struct {
	*demotest.Watcher
	*replicastest.Session

	url string
}

// open starts the program with its page on a free port.
func open(t *testing.T, env []string, args ...string) *site {
	t.Helper()
	s := &site{Watcher: demotest.New(), Session: replicastest.Launch(t, env, append([]string{"-web", "127.0.0.1:0"}, args...)...)}
	s.Await(t, "the page is at")
	s.url = regexp.MustCompile(`http://[0-9.:]+/`).FindString(s.Output())
	s.Order = func(o demo.Order) error {
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		r, err := http.Post(s.url+"orders", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode == http.StatusOK {
			return err
		}
		return errors.New(string(text))
	}
	stream, err := http.Get(s.url + "events")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(stream.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if message, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := s.Take([]byte(message)); err != nil {
					t.Errorf("%v: %s", err, message)
				}
			}
		}
	}()
	t.Cleanup(func() {
		_ = stream.Body.Close()
		<-ended
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

// Await waits for a text in the program's output.
func (s *site) Await(t *testing.T, text string) { s.Session.Await(t, text) }

// await waits for what the page is told.
func (s *site) await(t *testing.T, text string, done func(demo.State, map[int]demo.Item) bool) demo.State {
	t.Helper()
	return s.Watcher.Await(t, text, done)
}

// interrupt ends the program, which has to end in order and to be content.
func (s *site) interrupt(t *testing.T) {
	t.Helper()
	require.NoError(t, s.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, s.End(t), "%s\n%s\n%s", s.Output(), s.Stderr(), s.Log())
	require.Regexp(t, `[0-9]+ ticks ran; run twice: 0; leases that overlap: 0; `, s.Output())
}

// promised checks how long the last take-over took. Its bound holds for a machine that has time; a
// machine that is busy may be six times slower at what processes do, and no faster at a TTL.
func (s *site) promised(t *testing.T, from, cause string) {
	t.Helper()
	over := s.await(t, "a take-over from "+from, func(s demo.State, _ map[int]demo.Item) bool {
		return s.Takeover != nil && s.Takeover.From == from && s.Takeover.Cause == cause
	}).Takeover
	t.Logf("%s took over %d ms after %s from %s, promised %d ms", over.To, over.After, cause, from, over.Bound)
	require.LessOrEqual(t, over.After, 6*over.Bound, s.Log())
}

func TestPageOfALeaderThatIsKilledFrozenAndCutOff(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	first := s.AwaitLeader(t, "")
	s.AwaitTicks(t, 2)

	s.Do(t, demo.Order{Do: "kill", Replica: first})
	second := s.AwaitLeader(t, first)
	s.promised(t, first, "kill")
	s.await(t, first+" is dead", func(s demo.State, _ map[int]demo.Item) bool { return s.Replicas[first[0]-'a'].State == demo.Dead })
	s.Do(t, demo.Order{Do: "restart", Replica: first})
	s.AwaitTicks(t, 2)

	s.Do(t, demo.Order{Do: "freeze", Replica: second})
	s.AwaitLeader(t, second)
	s.promised(t, second, "freeze")
	s.Do(t, demo.Order{Do: "thaw", Replica: second})
	s.AwaitTicks(t, 2)

	third := s.AwaitLeader(t, "")
	s.Do(t, demo.Order{Do: "partition", Replica: third})
	s.AwaitLeader(t, third)
	s.promised(t, third, "partition")
	s.await(t, third+" knows", func(_ demo.State, items map[int]demo.Item) bool {
		for _, i := range items {
			if i.Kind == demo.KindTerm && i.Replica == third && strings.HasPrefix(i.End, "lost") {
				return true
			}
		}
		return false
	})
	s.Do(t, demo.Order{Do: "mend"})
	s.AwaitTicks(t, 3)
	require.Zero(t, s.State().Counters.Twice+s.State().Counters.Overlaps, s.Log())
	s.interrupt(t)
}

func TestPageOfAPausedHolder(t *testing.T) {
	for _, mode := range []string{modeElector, modeLocker} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil, "-mode", mode)
			s.AwaitTicks(t, 1)
			s.Do(t, demo.Order{Do: "late"})
			require.ErrorContains(t, s.Order(demo.Order{Do: "deploy"}), "still being told")
			s.await(t, "a refused write", func(state demo.State, items map[int]demo.Item) bool {
				for _, i := range items {
					if i.Kind == demo.KindWrite && i.Late && i.End == "refused" {
						return state.Counters.Refused > 0
					}
				}
				return false
			})
			s.AwaitLine(t, 0, "the store REFUSES a late write")
			s.await(t, "the end of the story", func(s demo.State, _ map[int]demo.Item) bool { return s.Story == nil })
			require.Zero(t, s.State().Counters.Accepted)

			s.Do(t, demo.Order{Do: "switch", Name: "fence"})
			s.Do(t, demo.Order{Do: "late"})
			s.await(t, "a late write that is taken", func(s demo.State, _ map[int]demo.Item) bool { return s.Counters.Accepted > 0 })
			s.interrupt(t)
		})
	}
}

func TestPageOfARollingDeploy(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.AwaitLeader(t, "")
	s.AwaitTicks(t, 1)
	before := pids(s.State())
	s.Do(t, demo.Order{Do: "deploy"})
	s.AwaitLine(t, 0, "every replica has been replaced")
	s.AwaitTicks(t, 2)
	for name, pid := range pids(s.State()) {
		require.NotZero(t, pid)
		require.NotEqual(t, before[name], pid, "%s is another process", name)
	}
	s.interrupt(t)
}

func pids(s demo.State) map[string]int {
	pids := make(map[string]int)
	for _, r := range s.Replicas {
		pids[r.Name] = r.PID
	}
	return pids
}

func TestPageOfNodesThatFail(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.AwaitLeader(t, "")
	s.Do(t, demo.Order{Do: "kill", Node: 1})
	s.Do(t, demo.Order{Do: "freeze", Node: 2})
	s.AwaitTicks(t, 2) // three of five are left
	s.Do(t, demo.Order{Do: "partition", Node: 3})
	s.await(t, "no leader", func(s demo.State, _ map[int]demo.Item) bool { return s.Leader == "" })
	require.ErrorContains(t, s.Order(demo.Order{Do: "thaw", Node: 1}), "node 1 is dead")
	s.Do(t, demo.Order{Do: "mend"})
	s.AwaitLeader(t, "")
	s.AwaitTicks(t, 2)

	// A server without its data has no vote for a while, and neither has one whose clock has
	// jumped.
	s.Do(t, demo.Order{Do: "restart", Node: 4})
	s.await(t, "a quarantine", func(s demo.State, _ map[int]demo.Item) bool { return !s.Nodes[3].Votes })
	s.await(t, "a vote", func(s demo.State, _ map[int]demo.Item) bool { return s.Nodes[3].Votes })
	s.Do(t, demo.Order{Do: "jump", Node: 5, Seconds: 5})
	s.await(t, "no vote after a jump", func(s demo.State, _ map[int]demo.Item) bool { return !s.Nodes[4].Votes })
	s.AwaitTicks(t, 2)
	s.interrupt(t)
}

// With the restart gate nobody is granted a lease that a quorum of nodes has forgotten. Without it
// two replicas run the job at once.
func TestPageOfAQuorumThatForgets(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.AwaitTicks(t, 1)
	s.Do(t, demo.Order{Do: "amnesia"})
	s.AwaitLine(t, 0, "nobody was granted the lease before it ran out")
	s.await(t, "the end of the story", func(s demo.State, _ map[int]demo.Item) bool { return s.Story == nil })
	require.Zero(t, s.State().Counters.Twice+s.State().Counters.Overlaps, s.Log())

	s.Do(t, demo.Order{Do: "switch", Name: "gate"})
	s.await(t, "the end of the restart", func(s demo.State, _ map[int]demo.Item) bool { return s.Story == nil && !s.Switches.Gate })
	// The lease may have run out before another replica asks, on a machine that is busy.
	for try := 0; s.State().Counters.Overlaps == 0; try++ {
		require.Less(t, try, 10, s.Log())
		lines := s.Lines()
		s.AwaitTicks(t, 1)
		s.Do(t, demo.Order{Do: "amnesia"})
		s.AwaitLine(t, lines, "waits until the job runs again")
		s.await(t, "the end of the story", func(s demo.State, _ map[int]demo.Item) bool { return s.Story == nil })
	}
	s.AwaitLine(t, 0, "both hold the lease")
	require.NoError(t, s.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, s.End(t), "what was switched off cannot be complained of\n%s", s.Stderr())
}

func TestPageOnRealServers(t *testing.T) {
	t.Parallel()
	s := open(t, []string{replicas.NodesVariable + "=" + strings.Join(valkeytest.Start(t, 3).URLs(), ",")})
	first := s.AwaitLeader(t, "")
	require.NotContains(t, s.State().Orders, "jump")
	require.NotContains(t, s.State().Orders, "amnesia")
	require.ErrorContains(t, s.Order(demo.Order{Do: "kill", Node: 1}), "does not own")
	s.Do(t, demo.Order{Do: "partition", Replica: first})
	s.AwaitLeader(t, first)
	s.Do(t, demo.Order{Do: "heal", Replica: first})
	s.AwaitTicks(t, 2)
	s.interrupt(t)
}

// The cluster page is beside the demonstration, also after the service has begun anew.
func TestClusterPage(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	leads := func() {
		t.Helper()
		leader := s.AwaitLeader(t, "")
		s.AwaitTicks(t, 1)
		require.Eventually(t, func() bool {
			r, err := http.Get(s.url + "tenure/api/v1/overview")
			require.NoError(t, err)
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, r.StatusCode, "%s", text)
			return strings.Contains(string(text), fmt.Sprintf(`"identity":%q`, leader))
		}, replicastest.Soon, 50*time.Millisecond)
	}
	leads()
	s.Do(t, demo.Order{Do: "switch", Name: "gate"})
	s.await(t, "the end of the restart", func(s demo.State, _ map[int]demo.Item) bool { return s.Story == nil && !s.Switches.Gate })
	leads()
	s.interrupt(t)
}

func TestPageUsage(t *testing.T) {
	for text, args := range map[string][]string{
		"missing port in address":    {"-web", "8080"},
		"0 of 1 servers can be used": {"-web", "127.0.0.1:0", "-nodes", "valkey://user:secret@127.0.0.1:1"},
		"-ttl 100ms is below":        {"-web", "127.0.0.1:0", "-ttl", "100ms"},
	} {
		s := replicastest.Launch(t, nil, args...)
		require.NotEqual(t, exitOK, s.End(t))
		require.Contains(t, s.Stderr(), text)
		require.NotContains(t, s.Stderr(), "secret")
	}
	s := replicastest.Launch(t, nil, "-web", ":0", "-duration", "2s")
	require.Equal(t, exitOK, s.End(t), s.Stderr())
	require.Contains(t, s.Output(), "the page is at http://127.0.0.1:", "on loopback")
}
