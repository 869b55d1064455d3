package client_test

import (
	"bufio"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/chaos/resource"
	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

// clientUnderTest is a client that runs inside the test.
type clientUnderTest struct {
	t        *testing.T
	dir      string
	input    io.WriteCloser
	answers  *bufio.Scanner
	status   chan int
	writes   string
	resource *resource.Server
}

func start(t *testing.T, fleet *valkeytest.Fleet, control client.Control) *clientUnderTest {
	t.Helper()
	dir := t.TempDir()
	writes, err := history.Create(dir, "writes")
	require.NoError(t, err)
	store, err := resource.Serve(writes)
	require.NoError(t, err)
	in, input := io.Pipe()
	answers, out := io.Pipe()
	c := &clientUnderTest{
		t: t, dir: t.TempDir(), input: input, answers: bufio.NewScanner(answers), status: make(chan int, 1),
		writes: filepath.Join(dir, "writes"+history.Suffix), resource: store,
	}
	go func() {
		c.status <- clients.Main(in, out, client.Begin)
		out.Close()
	}()
	settings, err := json.Marshal(client.Settings{
		URLs: fleet.URLs(), Prefix: "chaos", MaxTTL: time.Second, Skew: 500 * time.Millisecond,
		Keys:  []client.Key{{Name: "a", TTL: time.Second}, {Name: "b", TTL: time.Second}},
		Ticks: []client.Key{{Name: "tick", TTL: time.Second}}, Operator: true,
		Resource: store.Addr(), Seed: 1, Workers: 3, Control: control,
	})
	require.NoError(t, err)
	job, err := json.Marshal(clients.Assignment{Name: "c0.1", Journals: c.dir, Settings: settings})
	require.NoError(t, err)
	c.say(string(job))
	c.hear("ready")
	return c
}

func (c *clientUnderTest) say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.input, line+"\n")
	require.NoError(c.t, err)
}

func (c *clientUnderTest) hear(want string) {
	c.t.Helper()
	require.True(c.t, c.answers.Scan(), "%q is expected", want)
	require.Equal(c.t, want, c.answers.Text())
}

// count returns how many records of each kind its journal has.
func (c *clientUnderTest) count() (kinds map[record.Kind]int, last record.Record) {
	c.t.Helper()
	all, err := history.ReadAll[record.Record](c.dir)
	require.NoError(c.t, err)
	kinds = make(map[record.Kind]int)
	for _, r := range all["c0.1"] {
		kinds[r.Kind]++
		last = r
	}
	return kinds, last
}

func TestClientWorks(t *testing.T) {
	fleet := valkeytest.Start(t, 3, valkeytest.WithAge(time.Hour))
	c := start(t, fleet, client.NoControl)
	require.Eventually(t, func() bool {
		kinds, _ := c.count()
		return kinds[record.Released] >= 5 && kinds[record.Valid] >= 20
	}, time.Minute, 10*time.Millisecond)
	c.say(client.Settle)
	c.hear(client.Settle)
	c.say(client.Probe + " b a")
	c.hear(client.Probe)
	c.say("stop")
	require.Zero(t, <-c.status)
	require.NoError(t, c.resource.Close())

	kinds, last := c.count()
	require.Equal(t, 1, kinds[record.Votes])
	require.Equal(t, kinds[record.Want], kinds[record.Grant]+kinds[record.Fail])
	require.Equal(t, kinds[record.Release], kinds[record.Released])
	require.Equal(t, kinds[record.Pause]+kinds[record.Resume], kinds[record.Marked])
	require.Equal(t, record.Stop, last.Kind)
	require.Empty(t, last.Text, "no goroutine is left")
	for _, n := range fleet.Nodes() {
		for _, key := range n.Keys(t) {
			require.True(t, strings.HasSuffix(key, ":fences") || strings.HasSuffix(key, ":register"), key)
		}
	}

	all, err := history.ReadAll[record.Record](c.dir)
	require.NoError(t, err)
	tokens := make(map[string]uint64)
	probes := 0
	for _, r := range all["c0.1"] {
		switch r.Kind {
		case record.Want:
			if r.Text == "probe" {
				probes++
			}
		case record.Grant:
			tokens[r.Lease] = r.Token
			require.Greater(t, r.Deadline, r.At)
			require.Less(t, r.Deadline.Sub(r.At), time.Second)
		case record.Valid:
			require.Greater(t, r.Deadline, r.At)
		}
	}
	require.Equal(t, 2, probes)
	writes, err := history.Read[resource.Write](c.writes)
	require.NoError(t, err)
	require.NotEmpty(t, writes)
	for _, w := range writes {
		require.Equal(t, tokens[w.Lease], w.Token)
	}
}

// Ticks are granted, paused, refused, resumed, and granted again.
func TestClientPausesTicks(t *testing.T) {
	fleet := valkeytest.Start(t, 3, valkeytest.WithAge(time.Hour))
	c := start(t, fleet, client.NoControl)
	records := func() []record.Record {
		all, err := history.ReadAll[record.Record](c.dir)
		require.NoError(t, err)
		return all["c0.1"]
	}
	require.Eventually(t, func() bool {
		refused := false
		for _, r := range records() {
			refused = refused || r.Kind == record.Fail && r.Text == "paused"
		}
		return refused
	}, time.Minute, 50*time.Millisecond)
	c.say(client.Settle)
	c.hear(client.Settle)
	c.say(client.Resume + " " + client.All + " tick")
	c.hear(client.Resume)
	c.say(client.Tick + " tick")
	c.hear(client.Tick)
	c.say("stop")
	require.Zero(t, <-c.status)
	require.NoError(t, c.resource.Close())

	calls, ticks := make(map[string]record.Record), make(map[string]record.Record)
	paused, granted := false, false
	for _, r := range records() {
		switch r.Kind {
		case record.Pause, record.Resume:
			calls[r.Lease] = r
		case record.Marked:
			call, called := calls[r.Lease]
			require.True(t, called)
			if r.Text != "" {
				continue
			}
			require.NotZero(t, r.Token)
			require.GreaterOrEqual(t, r.Nodes, 2)
			if call.Kind == record.Pause {
				require.GreaterOrEqual(t, r.Floor, max(call.Floor, 1))
			}
			granted = false
		case record.Want:
			if r.Text == "tick" {
				ticks[r.Lease] = r
			}
		case record.Grant:
			require.Equal(t, ticks[r.Lease].Lease != "", r.Tick != 0)
			granted = granted || r.Tick != 0
		case record.Fail:
			if r.Text == "paused" {
				require.NotEmpty(t, ticks[r.Lease].Lease)
				paused = true
			}
		}
	}
	require.True(t, paused)
	require.True(t, granted, "in the end")
}

// The restart gate keeps new servers from voting. Without it they vote, which is what the control
// is for.
func TestControlTurnsTheGateOff(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	c := start(t, fleet, client.NoGate)
	granted := func() bool {
		kinds, _ := c.count()
		return kinds[record.Grant] > 0
	}
	require.Eventually(t, granted, time.Minute, 5*time.Millisecond)
	all, err := history.ReadAll[record.Record](c.dir)
	require.NoError(t, err)
	for _, r := range all["c0.1"] {
		if r.Kind == record.Grant {
			uptime := r.At.Sub(all["c0.1"][0].At)
			require.Less(t, uptime, 2500*time.Millisecond, "before the gate would have opened")
			break
		}
	}
	c.say("stop")
	require.Zero(t, <-c.status)
	require.NoError(t, c.resource.Close())
}

func TestOrphanEnds(t *testing.T) {
	fleet := valkeytest.Start(t, 3, valkeytest.WithAge(time.Hour))
	c := start(t, fleet, client.NoControl)
	require.NoError(t, c.input.Close())
	require.Equal(t, 1, <-c.status)
	require.NoError(t, c.resource.Close())
}

func TestBadAssignment(t *testing.T) {
	t.Chdir(t.TempDir()) // one that names no directory has its journal here
	for _, text := range []string{"", "{", "{}\n"} {
		require.Equal(t, 1, clients.Main(strings.NewReader(text), io.Discard, client.Begin))
	}
}
