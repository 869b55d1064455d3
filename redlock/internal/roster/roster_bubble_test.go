package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

const timeout = time.Second // of each node

// server keeps a roster as roster.lua does, by the bubble's clock.
type server struct {
	name     string
	status   node.Status
	mu       sync.Mutex
	fields   map[string]string // guarded by mu
	calls    int               // guarded by mu
	silent   bool              // guarded by mu; it does not answer
	reserved bool              // guarded by mu
	refuses  error             // guarded by mu
	hold     chan struct{}     // guarded by mu; answers wait for it; nil for not
}

func (s *server) Status() *node.Status { return &s.status }

func (s *server) Address() string { return "at " + s.name }

func (s *server) Reply(_ *wire.Call, a node.Answer) vote.Reply {
	return vote.Reply{Answer: a.Answer, Err: a.Err, Unsent: a.Unsent, At: a.Received}
}

func (s *server) Send(r *node.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.silent {
		return
	}
	a := node.Answer{Err: s.refuses, Answer: wire.Answer{Verdict: wire.Failed}, Sent: r.Expires.Add(-timeout)}
	if s.refuses == nil {
		a.Answer = wire.Answer{Verdict: wire.OK}.With(wire.More{Roster: s.carryOut(r.Call.Roster)})
	}
	hold := s.hold
	go func() {
		if hold != nil {
			<-hold
		}
		r.To.Answered(r, a)
	}()
}

// carryOut is called with mu held.
func (s *server) carryOut(words []string) *wire.Roster {
	now := time.Duration(time.Now().UnixNano()).Truncate(time.Millisecond)
	was := wire.ParseRoster(maps.Clone(s.fields), now)
	was.Reserved = s.reserved
	var removed int
	_, _ = fmt.Sscan(words[0], &removed)
	words = words[1:]
	for range removed {
		if s.fields[words[0]] == words[1] {
			delete(s.fields, words[0])
		}
		words = words[2:]
	}
	for ; len(words) > 0; words = words[2:] {
		s.fields[words[0]] = fmt.Sprint(now.Milliseconds(), " ", words[1])
	}
	return was
}

// has is what is fresh on a server.
func (s *server) has() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, e := range wire.ParseRoster(s.fields, time.Duration(time.Now().UnixNano())).Entries {
		switch e.Field[0] {
		case wire.RosterList:
			all = append(all, "list of "+e.Says[0])
		case wire.RosterServer:
			all = append(all, e.Field[1]+" is "+e.Field[2])
		default:
			all = append(all, "refused "+e.Field[1])
		}
	}
	return strings.Join(all, ", ")
}

// write has a server keep an entry.
func (s *server) write(e wire.Entry) {
	s.set(func() {
		written := e.Written(time.Duration(time.Now().UnixNano()))
		s.fields[written[0]] = written[1]
	})
}

func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// fleet is servers by their names.
type fleet map[string]*server

func newFleet(names string) fleet {
	f := make(fleet)
	for _, name := range strings.Split(names, "") {
		f[name] = &server{name: name, fields: make(map[string]string)}
	}
	return f
}

// process is one with some of the servers, and what it was told.
type process struct {
	*Roster

	nodes []*server
	work  sync.WaitGroup

	mu      sync.Mutex
	told    map[string]*wire.Fault
	stops   int
	longest map[int]time.Duration
}

// quarantine is that for the longest TTL that is known.
func (p *process) quarantine() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := 10 * time.Second
	for _, ttl := range p.longest {
		longest = max(longest, ttl)
	}
	return longest + 4*time.Second
}

func (p *process) tell(about Matter, i int, why *wire.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[fmt.Sprint(about, " ", i)] = why
	if about == Stopped {
		p.stops++
	}
}

// begin makes a process with those nodes, each a name and perhaps the server that it leads to.
func (f fleet) begin(who, nodes string, change ...func(*Config)) *process {
	p := &process{told: make(map[string]*wire.Fault), longest: make(map[int]time.Duration)}
	var names []string
	for _, n := range strings.Fields(nodes) {
		names = append(names, n[:1])
		p.nodes = append(p.nodes, f[n[len(n)-1:]])
	}
	keys := wire.RosterKeys("p")
	cfg := Config{
		Names: names, Node: func(i int) Node { return p.nodes[i] }, Need: len(names)/2 + 1, Keys: &keys, Clock: clock.New(),
		Identity: who, MaxTTL: 10 * time.Second, Skew: 2 * time.Second, RestartGate: true,
		Timeout: timeout, LookEvery: 5 * time.Second, Lifetime: 13 * time.Second, Quarantine: p.quarantine,
		Background: func(g func()) bool { p.work.Go(g); return true }, Tell: p.tell,
		Longest: func(i int, ttl, _ time.Duration) { p.mu.Lock(); p.longest[i] = ttl; p.mu.Unlock() },
	}
	for _, c := range change {
		c(&cfg)
	}
	p.Roster = New(cfg)
	return p
}

// Join has a server join that was seen just now.
func (p *process) Join(ctx context.Context, i int, id string, age time.Duration) (time.Duration, error) {
	return p.Roster.Join(ctx, i, id, p.now(), age)
}

// id is that of a server, as its processes know it.
func id(s *server) string { return "run-id-of-" + s.name }

// join has all servers join, and returns what comes of that.
func (p *process) join(t *testing.T) []error {
	t.Helper()
	errs := make([]error, len(p.nodes))
	var work sync.WaitGroup
	for i, n := range p.nodes {
		work.Go(func() { _, errs[i] = p.Join(t.Context(), i, id(n), 2*time.Hour) })
	}
	work.Wait()
	return errs
}

// enter has a process enter whose servers join, and reports whether it is admitted.
func (p *process) enter(t *testing.T) bool {
	t.Helper()
	p.join(t)
	_ = p.Enter(t.Context())
	return p.Admitted()
}

// look lets the process look after its servers, as nodes have it do.
func (p *process) look() {
	p.Refresh()
	p.work.Wait()
}

// pass lets time pass, in which processes look.
func pass(d time.Duration, all ...*process) {
	for range d / (5 * time.Second) {
		time.Sleep(5 * time.Second)
		for _, p := range all {
			p.look()
		}
	}
}

// Who wants a first lease waits a moment for a node that is silent, and then goes by the others.
func TestEntryWaitsLittleForASilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c", func(c *Config) { c.Timeout = time.Minute })
		require.Equal(t, make([]error, 3), p.join(t))
		f["c"].silent = true
		began := time.Now()
		require.Nil(t, p.Enter(t.Context()))
		require.True(t, p.Admitted())
		require.Equal(t, maxPatience, time.Since(began))
		time.Sleep(time.Until(began.Add(Absence)))
		require.False(t, p.Admitted(), "it had asked then")
	})
}

// A process that no quorum of its servers counts for says nothing: it can have no lease, and would
// keep others out. It enters with the last one that joins.
func TestEntryNeedsAQuorumThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		_, err := p.Join(t.Context(), 0, id(f["a"]), time.Hour)
		require.NoError(t, err)
		require.Nil(t, p.Enter(t.Context()))
		pass(10*time.Second, p)
		require.Empty(t, f["a"].has())
		require.False(t, p.Admitted())
		_, err = p.Join(t.Context(), 2, id(f["c"]), time.Hour)
		require.NoError(t, err)
		require.True(t, p.Admitted())
		require.Equal(t, "a is run-id-of-a, c is run-id-of-c, list of p", f["b"].has())
	})
}

// What a process has written is said again with each look, and it goes on for an absence after a
// quorum took that. Then it enters anew; its list is known for a lifetime more.
func TestEntriesAreFreshForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abcd")
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		pass(100*time.Second, p)
		require.True(t, p.Admitted())
		for _, name := range []string{"a", "b"} {
			f[name].set(func() { f[name].silent = true })
		}
		pass(Absence-5*time.Second, p)
		require.True(t, p.Admitted())
		time.Sleep(5 * time.Second)
		require.False(t, p.Admitted(), "fewer than a quorum have heard of it")
		require.Contains(t, f["a"].has(), "list of p", "its leases may live on")
		f["a"].set(func() { f["a"].silent = false })
		q := f.begin("q", "a b d")
		q.cfg.Node = func(i int) Node { return []*server{f["a"], f["d"], f["d"]}[i] }
		require.False(t, q.enter(t))
		time.Sleep(13*time.Second + Absence)
		require.True(t, q.enter(t))
		require.False(t, p.enter(t))
		require.Equal(t, wire.AnotherList, p.Refused().Condition)
		require.True(t, q.Admitted())
	})
}

// Of two that write at once one finds the other's list, and takes its own back.
func TestTwoListsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for turn := range 50 {
			f := newFleet("abcde")
			p, q := f.begin("p", "a b c"), f.begin("q", []string{"a b d", "a d e"}[turn%2])
			p.join(t)
			q.join(t)
			var work sync.WaitGroup
			work.Go(func() { _ = p.Enter(context.Background()) })
			work.Go(func() { _ = q.Enter(context.Background()) })
			work.Wait()
			require.False(t, p.Admitted() && q.Admitted())
			if !p.Admitted() {
				require.NotContains(t, f["c"].has(), "list of p")
				require.Contains(t, f["a"].has(), "refused p")
			}
			if !q.Admitted() {
				require.NotContains(t, f["d"].has(), "list of q")
			}
		}
	})
}

// What is taken back stays where another process with the same list has written it.
func TestWhatIsAnothersIsNotTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abcd")
		q := f.begin("q", "a b d")
		q.join(t)
		f["a"].set(func() { f["a"].hold = make(chan struct{}) })
		done := make(chan struct{})
		go func() { _ = q.Enter(context.Background()); close(done) }() // it has read that nobody is there
		synctest.Wait()
		f["d"].write(f.begin("like q", "a b d").self)
		f["b"].write(f.begin("p", "a b c").self)
		f["a"].set(func() { close(f["a"].hold); f["a"].hold = nil })
		<-done
		require.Equal(t, wire.AnotherList, q.Refused().Condition)
		require.NotContains(t, f["a"].has(), "list of q")
		require.Contains(t, f["d"].has(), "list of q", "it is the other one's as well")
	})
}

// A process that was refused tries again after two to three seconds, and asks nobody meanwhile. It
// reads before it writes, so that it keeps nobody out.
func TestRefusedProcessTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abcd")
		require.True(t, f.begin("p", "a b c").enter(t))
		q := f.begin("q", "a b d")
		retry, err := q.Join(t.Context(), 0, id(f["a"]), time.Hour)
		require.Equal(t, wire.AnotherList, wire.FaultOf(err).Condition)
		require.Contains(t, err.Error(), "p has the nodes a, b, c, and this process has a, b, d")
		require.GreaterOrEqual(t, retry, 2*time.Second)
		require.LessOrEqual(t, retry, 3*time.Second)
		calls := f["a"].calls
		require.NotNil(t, q.Enter(t.Context()))
		_, err = q.Join(t.Context(), 1, id(f["b"]), time.Hour)
		require.Error(t, err)
		require.Equal(t, calls, f["a"].calls)
		time.Sleep(3 * time.Second)
		q.join(t)
		require.NotContains(t, f["d"].has(), "list")
		require.Equal(t, "refused q", f["d"].has())
		require.Equal(t, wire.AnotherList, q.told["0 0"].Condition)
		time.Sleep(13*time.Second + grace)
		require.True(t, q.enter(t))
		require.Nil(t, q.told["0 0"])
	})
}

// A process whose answers come too late is not admitted, and writes on: its leases are extended.
func TestSlowProcessWritesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abcd")
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		hold := make(chan struct{})
		for _, s := range f {
			s.set(func() { s.hold = hold })
		}
		pass(2*time.Minute, p)
		require.False(t, p.Admitted())
		for _, s := range f {
			s.set(func() { s.hold = nil })
		}
		close(hold)
		q := f.begin("q", "a b d")
		require.False(t, q.enter(t))
		require.Equal(t, wire.AnotherList, q.Refused().Condition)
		pass(10*time.Second, p)
		require.True(t, p.Admitted())
	})
}

// Something under the name that is kept for a change of nodes is not understood, and refuses.
func TestReservedNameRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		f["b"].set(func() { f["b"].reserved = true })
		q := f.begin("q", "a b c")
		require.False(t, q.enter(t))
		require.Equal(t, wire.OtherVersion, q.Refused().Condition)
		require.Contains(t, q.Refused().Detail, "at b holds something under p:nodes")
		pass(10*time.Second, p)
		require.True(t, p.Admitted(), "it goes on")
		require.Equal(t, wire.OtherVersion, p.told["1 1"].Condition)
	})
}

// A process whose servers counted before it wanted leases counts nothing of the one that others
// know as another, from its entry on.
func TestAnotherServerIsFoundOnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abcd")
		p, q := f.begin("p", "a b c"), f.begin("q", "a b c=d")
		require.Equal(t, make([]error, 3), q.join(t))
		require.True(t, p.enter(t))
		require.Nil(t, q.Enter(t.Context()))
		require.True(t, q.Admitted())
		require.False(t, q.Counts(2))
		require.Equal(t, wire.SeveralServers, q.Against(2).Condition)
		require.Nil(t, q.Against(1))
	})
}

// The next process at an address counts once the one before was not seen for a lifetime, which is
// within its quarantine. One at another address waits longer.
func TestSuccessorAtTheSameAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		require.True(t, f.begin("p", "a b c").enter(t))
		time.Sleep(13 * time.Second)
		q := f.begin("q", "a b c")
		_, err := q.Join(t.Context(), 2, "another", time.Hour)
		require.Equal(t, wire.SeveralServers, wire.FaultOf(err).Condition)
		time.Sleep(time.Second)
		_, err = q.Join(t.Context(), 2, "another", time.Hour)
		require.NoError(t, err)
		p := f.begin("p", "a b c", func(c *Config) { c.RestartGate = false })
		_, err = p.Join(t.Context(), 2, "another", 0)
		require.ErrorContains(t, err, "with another restart gate")
	})
}

// elsewhere is a node at another address.
type elsewhere struct{ Node }

func (elsewhere) Address() string { return "elsewhere" }

// On each of two nodes another process was the last to write the server that has ended. Each
// process takes back what it wrote, although neither may count the successor before the other has
// done so.
func TestSuccessorThatNobodyMayCountYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		q := f.begin("q", "a b c", func(c *Config) {
			near := c.Node
			c.Node = func(i int) Node { return elsewhere{near(i)} }
		})
		require.True(t, q.enter(t))
		require.True(t, p.enter(t))
		f["b"].write(wire.Entry{Field: []string{wire.RosterServer, "c", id(f["c"])}, Says: []string{"q", q.address(2)}, Life: p.self.Life})
		q.Restarted(2)
		p.Restarted(2)
		pass(15*time.Second, q, p)
		_, err := q.Join(t.Context(), 2, "another", 15*time.Second)
		require.Equal(t, wire.SeveralServers, wire.FaultOf(err).Condition)
		_, err = p.Join(t.Context(), 2, "another", 15*time.Second)
		require.NoError(t, err)
		_, err = q.Join(t.Context(), 2, "another", 15*time.Second)
		require.NoError(t, err)
	})
}

// A process that goes on tells what differs and when that is over, and counts as ever. So it does
// with those that were refused, and so does one that only looks.
func TestDifferenceIsToldInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p, only := f.begin("p", "a b c"), f.begin("looks", "a b c")
		require.True(t, p.enter(t))
		only.join(t)
		for _, e := range []wire.Entry{f.begin("far", "a z").self, {Field: []string{wire.RosterRefused, "no"}, Says: []string{"another_list", "y"}},
			{Field: []string{wire.RosterServer, "b", "x"}, Says: []string{"far", "at z"}}} {
			e.Life = 8 * time.Second
			f["a"].write(e)
		}
		pass(5*time.Second, p, only)
		require.Contains(t, p.told["1 0"].Detail, "far has the nodes a, z")
		require.Equal(t, wire.SeveralServers, p.told["1 1"].Condition)
		require.Contains(t, p.told["2 0"].Detail, "no, with the nodes y")
		require.Equal(t, p.told["2 0"], only.told["2 0"])
		require.Nil(t, cmp.Or(p.told["1 2"], p.Against(1), only.Against(1)))
		pass(5*time.Second, p)
		require.Equal(t, []*wire.Fault{nil, nil, nil}, []*wire.Fault{p.told["1 0"], p.told["1 1"], p.told["2 0"]})
		require.Zero(t, p.stops)
		pass(5*time.Second, p)
		require.NotContains(t, f["a"].fields, "refused no", "what is not fresh is removed")
	})
}

// The longest TTL of all fresh lists counts, what one process writes another one does not hide, and
// a server that is too young for it does not count. One that was restarted may have forgotten it.
func TestLongestIsThatOfAllLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		q := f.begin("q", "a b c", func(c *Config) { c.MaxTTL = time.Hour })
		require.True(t, q.enter(t) && p.enter(t))
		p.look()
		reader := f.begin("reader", "a b c")
		reader.join(t)
		f["c"].silent = true
		pass(5*time.Second, p, reader)
		require.Equal(t, time.Hour, reader.longest[2], "it has said nothing else since")
		clear(f["b"].fields)
		pass(5*time.Second, p) // it does not know that the server was restarted
		p.Restarted(1)
		pass(45*time.Second, p)
		require.Equal(t, 10*time.Second, p.longest[0], "its list is not fresh any more")
		require.Equal(t, time.Hour, p.longest[1])
		_, err := p.Join(t.Context(), 1, id(f["b"]), time.Minute)
		require.Equal(t, wire.Quarantined, wire.FaultOf(err).Condition)
		_, _ = p.Join(t.Context(), 1, id(f["b"]), 2*time.Hour)
		f["a"].write(f.begin("far", "a b c", func(c *Config) { c.MaxTTL = 25 * time.Hour }).self)
		pass(5*time.Second, p)
		require.Equal(t, 10*time.Second, p.longest[0], "no process may have that")
		require.Equal(t, 10*time.Second, p.longest[1])
	})
}

// A server that refuses to keep who uses it is there all the same. One that takes no connection, or
// has just begun, may be the next: who knows the one before says so no longer.
func TestServerThatRefusesTheRosterIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		f["b"].refuses, f["c"].silent = &wire.Fault{Condition: wire.NoPermission}, true
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		require.Equal(t, []bool{true, true, false}, []bool{p.Counts(0), p.Counts(1), p.Counts(2)})
		for _, condition := range []wire.Condition{wire.NoAuth, wire.TooManyUsers, wire.Protected, wire.Loading} {
			f["b"].set(func() { f["b"].refuses = &wire.Fault{Condition: condition} })
			pass(time.Minute, p)
			require.NotContains(t, f["a"].has(), "b is", condition)
		}
		f["b"].set(func() { f["b"].refuses = errors.New("reset") })
		pass(Absence, p)
		require.False(t, p.Admitted())
	})
}

// A loss of what nodes knew is healed with the next look, and a server that is restarted is told at
// once.
func TestLossIsHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		p.look()
		clear(f["a"].fields)
		pass(5*time.Second, p)
		require.Contains(t, f["a"].has(), "list of p")
		clear(f["a"].fields)
		p.Restarted(0)
		p.work.Wait()
		require.Equal(t, "b is run-id-of-b, c is run-id-of-c, list of p", f["a"].has(), "its own process has no vote yet")
	})
}

// A process that was suspended goes on with answers that are old by then: a server that it found
// before is not there now for that. The others did not count the server's successor.
func TestServerWasThereWhenItWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		c, late := f["c"], make(chan struct{})
		c.set(func() { c.hold = late })
		pass(5*time.Second, p)
		c.set(func() { c.hold = nil })
		c.status.Err = node.ErrTimeout
		pass(Absence+grace, p)
		require.NotContains(t, f["a"].has(), "c is")
		time.Sleep(5 * time.Second)
		close(late)
		synctest.Wait()
		c.status.Err = nil
		p.look()
		require.NotContains(t, f["a"].has(), "c is", "an old answer")
		pass(5*time.Second, p)
		require.Contains(t, f["a"].has(), "c is")
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		for i, name := range []string{"a", "b"} {
			_, err := p.Join(t.Context(), i, id(f[name]), time.Hour)
			require.NoError(t, err)
		}
		require.Nil(t, p.Enter(t.Context()))
		time.Sleep(5 * time.Second)
		_, err := p.Roster.Join(t.Context(), 2, "gone", p.now().Add(-time.Minute), time.Hour)
		require.NoError(t, err)
		require.NotContains(t, f["a"].has(), "gone", "another server may have answered since")
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
