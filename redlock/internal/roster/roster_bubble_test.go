package roster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// server keeps a roster as roster.lua does, by the bubble's clock.
type server struct {
	name    string
	status  node.Status
	mu      sync.Mutex
	values  map[string]string // guarded by mu
	calls   int               // guarded by mu
	silent  bool              // guarded by mu; it does not answer
	refuses error             // guarded by mu
	hold    chan struct{}     // guarded by mu; answers wait for it; nil for not
}

func (s *server) Status() *node.Status { return &s.status }

func (s *server) Address() string { return "at " + s.name }

func (s *server) Reply(_ *wire.Call, a node.Answer) vote.Reply {
	return vote.Reply{Answer: a.Answer, Err: a.Err, Unsent: a.Unsent, At: a.Received}
}

func (s *server) Send(r *node.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.silent {
		return nil
	}
	a := node.Answer{Err: s.refuses, Answer: wire.Answer{Verdict: wire.Failed}}
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
	return nil
}

// carryOut is called with mu held.
func (s *server) carryOut(words []string) *wire.Roster {
	now := time.Duration(time.Now().UnixNano()).Truncate(time.Millisecond)
	was := wire.ParseRoster(maps.Clone(s.values), now)
	var notes int
	_, _ = fmt.Sscan(words[0], &notes)
	words = words[1:]
	for range notes {
		var age int
		_, _ = fmt.Sscan(words[1], &age)
		s.values[words[0]] = fmt.Sprint((now - time.Duration(age)*time.Millisecond).Milliseconds(), " ", words[2])
		words = words[3:]
	}
	for ; len(words) > 0; words = words[3:] {
		switch {
		case s.values[words[0]] != words[1]:
		case words[2] == "":
			delete(s.values, words[0])
		default:
			s.values[words[0]] = words[2]
		}
	}
	return was
}

// has is what is fresh on a server, by the first words of the fields.
func (s *server) has() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := wire.ParseRoster(s.values, time.Duration(time.Now().UnixNano()))
	var all []string
	for _, l := range r.Lists {
		all = append(all, "list of "+l.By)
	}
	for _, k := range r.Servers {
		all = append(all, k.Name+" is "+k.ID)
	}
	for _, o := range r.Refused {
		all = append(all, "refused "+o.By)
	}
	return strings.Join(all, ", ")
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
		f[name] = &server{name: name, values: make(map[string]string)}
	}
	return f
}

// process is one with some of the servers, and what it has observed.
type process struct {
	*Roster

	nodes  []*server
	limits Limits
	work   sync.WaitGroup

	mu        sync.Mutex
	unwritten []string
	differs   map[int]*wire.Fault
	refusals  map[int][]wire.Refusal
	longer    []*wire.Fault
	leads     map[int]*time.Duration
}

func (p *process) locked(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *process) Lead(i int, lead *time.Duration, _ clock.Instant) {
	p.locked(func() { p.leads[i] = lead })
}

func (p *process) Unwritten(i int, why *wire.Fault) {
	p.locked(func() { p.unwritten = append(p.unwritten, fmt.Sprint(i, " ", why)) })
}

func (p *process) Differs(i int, why *wire.Fault) { p.locked(func() { p.differs[i] = why }) }

func (p *process) Refused(i int, others []wire.Refusal) {
	p.locked(func() { p.refusals[i] = others })
}

func (p *process) Longer(why *wire.Fault) { p.locked(func() { p.longer = append(p.longer, why) }) }

// begin makes a process with those nodes, each a name and perhaps the server that it leads to.
func (f fleet) begin(who, nodes string) *process {
	p := &process{differs: make(map[int]*wire.Fault), refusals: make(map[int][]wire.Refusal), leads: make(map[int]*time.Duration)}
	var names []string
	for _, n := range strings.Fields(nodes) {
		names = append(names, n[:1])
		p.nodes = append(p.nodes, f[n[len(n)-1:]])
	}
	keys := wire.RosterKeys("p")
	p.Roster = New(Config{
		Names: names, Node: func(i int) Node { return p.nodes[i] }, Need: len(names)/2 + 1,
		Keys: &keys, Identity: who, MaxTTL: 10 * time.Second, Skew: 2 * time.Second, RestartGate: true,
		Timeout: time.Second, LookEvery: 5 * time.Second, Quarantine: func() time.Duration { return max(14*time.Second, p.limits.TTL()) },
		Lifetime: 13 * time.Second, Limits: &p.limits, Clock: clock.New(), Waits: &vote.Waits{},
		Leads:      func(clock.Instant) []*time.Duration { return make([]*time.Duration, len(names)) },
		Background: func(g func()) bool { p.work.Go(g); return true }, Observer: p,
	})
	return p
}

// id is that of a server, as its processes know it.
func id(s *server) string { return strings.Repeat("0", 39) + s.name }

// join has all servers join, and returns what comes of that.
func (p *process) join(t *testing.T) []error {
	t.Helper()
	errs := make([]error, len(p.nodes))
	var work sync.WaitGroup
	for i, n := range p.nodes {
		work.Go(func() { _, errs[i] = p.Join(t.Context(), i, id(n), time.Hour) })
	}
	work.Wait()
	return errs
}

// enter has a process enter whose servers join, and reports whether it is admitted.
func (p *process) enter(t *testing.T) bool {
	t.Helper()
	p.join(t)
	_ = p.Enter(t.Context())
	p.work.Wait()
	return p.Admitted()
}

// look lets the process look after its servers, as nodes have it do.
func (p *process) look() {
	p.Refresh()
	p.work.Wait()
}

// A process that acquires nothing writes nothing; the first lease has it enter.
func TestEntryComesWithTheFirstLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		require.Equal(t, make([]error, 3), p.join(t))
		for range 5 {
			time.Sleep(5 * time.Second)
			p.look()
		}
		require.Empty(t, f["a"].has())
		require.False(t, p.Admitted())
		require.False(t, p.Enters())
		require.Nil(t, p.Enter(t.Context()))
		require.True(t, p.Admitted())
		for _, s := range f {
			require.Equal(t, "list of p, a is "+id(f["a"])+", b is "+id(f["b"])+", c is "+id(f["c"]), s.has())
		}
	})
}

// What a process has written is said again with each look, and counts for an absence after it was
// heard last. Then it enters anew.
func TestEntriesAreFreshForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abcd")
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		for range 20 {
			time.Sleep(5 * time.Second)
			p.look()
		}
		require.True(t, p.Admitted())
		for _, name := range []string{"a", "b"} {
			f[name].set(func() { f[name].silent = true })
		}
		time.Sleep(Absence - 5*time.Second)
		p.look()
		require.True(t, p.Admitted())
		time.Sleep(5 * time.Second)
		require.False(t, p.Admitted(), "fewer than a quorum have heard of it")
		require.Contains(t, f["a"].has(), "list of p", "its leases may live on")
		q := f.begin("q", "a b d")
		f["b"].status.Err = errors.New("silent")
		f["a"].set(func() { f["a"].silent = false })
		require.False(t, q.enter(t))
		time.Sleep(13*time.Second + retryEvery + retrySpread)
		require.True(t, q.enter(t))
		f["b"].set(func() { f["b"].silent = false })
		require.False(t, p.enter(t))
		require.Equal(t, wire.AnotherList, p.Roster.Refused().Condition)
		require.True(t, q.Admitted())
	})
}

// A process that is refused has taken back what it wrote, and what was there before is as it was.
func TestRefusedProcessTakesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abcd")
		p, q := f.begin("p", "a b c"), f.begin("q", "a b d")
		q.join(t) // nobody is there
		f["a"].set(func() { f["a"].hold = make(chan struct{}) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = q.Enter(t.Context()) // it is told that nobody is there, and writes next
		}()
		synctest.Wait()
		require.True(t, func() bool { p.join(t); return true }())
		f["a"].set(func() { close(f["a"].hold); f["a"].hold = nil })
		<-done
		q.work.Wait()
		require.True(t, q.Admitted())
		time.Sleep(retryEvery + retrySpread)
		require.False(t, p.enter(t))
		time.Sleep(retryEvery + retrySpread)
		require.False(t, p.enter(t))
		require.Equal(t, wire.AnotherList, p.Roster.Refused().Condition)
		require.NotContains(t, f["c"].has(), "list of p")
		require.Equal(t, "refused p", f["c"].has())
	})
}

// Of two that write at once one finds the other's entry, and takes its own back.
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
			}
			if !q.Admitted() {
				require.NotContains(t, f["d"].has(), "list of q")
			}
		}
	})
}

// A process that was refused tries again after two to three seconds, and asks nobody meanwhile.
func TestRefusedProcessTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abcd")
		require.True(t, f.begin("p", "a b c").enter(t))
		q := f.begin("q", "a b d")
		retry, err := q.Join(t.Context(), 0, id(f["a"]), time.Hour)
		require.Equal(t, wire.AnotherList, wire.FaultOf(err).Condition)
		require.Contains(t, err.Error(), "p has the nodes a, b, c, and this process has a, b, d")
		require.GreaterOrEqual(t, retry, retryEvery)
		require.LessOrEqual(t, retry, retryEvery+retrySpread)
		calls := f["a"].calls
		require.NotNil(t, q.Enter(t.Context()))
		again, err := q.Join(t.Context(), 1, id(f["b"]), time.Hour)
		require.Error(t, err)
		require.LessOrEqual(t, again, retry)
		require.Equal(t, calls, f["a"].calls)
		require.NotContains(t, f["d"].has(), "list")
	})
}

// A server counts for nobody while another one is known under its name, and the others count.
func TestAnotherServerUnderAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abcd")
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		q := f.begin("q", "a b c=d")
		f["d"].status.Err = errors.New("its gate stays closed")
		errs := q.join(t)
		require.Equal(t, wire.SeveralServers, wire.FaultOf(errs[2]).Condition)
		require.Contains(t, errs[2].Error(), "p, which saw it")
		require.Equal(t, []bool{true, true, false}, []bool{q.Counts(0), q.Counts(1), q.Counts(2)})
		require.Nil(t, q.Enter(t.Context()))
		require.True(t, q.Admitted())
		for _, s := range f {
			require.NotContains(t, s.has(), "c is "+id(f["d"]))
		}
		f["c"].set(func() { f["c"].silent = true })
		for range 3 {
			time.Sleep(5 * time.Second)
			p.look()
			q.look()
		}
		_, err := q.Join(t.Context(), 2, id(f["d"]), time.Hour)
		require.NoError(t, err, "nobody has seen the first for a lifetime")
		f["c"].set(func() { f["c"].silent = false })
		_, err = p.Join(t.Context(), 2, id(f["c"]), time.Hour)
		require.Equal(t, wire.SeveralServers, wire.FaultOf(err).Condition)
		require.True(t, p.Admitted())
	})
}

// A process whose servers counted before it wanted leases counts nothing when it finds another
// server known under one of its names: the one that votes is looked at first.
func TestAnotherServerIsFoundOnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abcd")
		p, q := f.begin("p", "a b c"), f.begin("q", "a b c=d")
		require.Equal(t, make([]error, 3), q.join(t))
		require.True(t, p.enter(t))
		require.Equal(t, wire.SeveralServers, q.Enter(t.Context()).Condition)
		require.False(t, q.Admitted())
		require.False(t, q.Counts(2))
		time.Sleep(retryEvery + retrySpread)
		require.Nil(t, q.Enter(t.Context()))
		require.False(t, q.Admitted(), "its gate is open")
		f["d"].status.Err = errors.New("closed")
		time.Sleep(retryEvery + retrySpread)
		require.Nil(t, q.Enter(t.Context()))
		require.True(t, q.Admitted())
	})
}

// While a process goes on, a server joins if a quorum can be asked whether another one is known.
func TestServerThatComesLaterNeedsAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		for _, name := range []string{"a", "b"} {
			f[name].set(func() { f[name].silent = true })
		}
		_, err := p.Join(t.Context(), 2, id(f["c"]), time.Hour)
		require.Equal(t, wire.Restarted, wire.FaultOf(err).Condition)
		f["a"].set(func() { f["a"].silent = false })
		_, err = p.Join(t.Context(), 2, id(f["c"]), time.Hour)
		require.NoError(t, err)
	})
}

// A process that goes on tells what differs and when that is over, and counts as ever. So it does
// with those that were refused.
func TestDifferenceIsToldInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		far := wire.List{Names: []string{"a", "z"}, Gate: true, By: "far"}
		note, no := far.Note(8*time.Second), (&wire.Refusal{By: "no", Names: []string{"y"}}).Note(8*time.Second)
		now := time.Duration(time.Now().UnixNano())
		f["a"].set(func() { f["a"].values[note.Field], f["a"].values[no.Field] = note.Value(now), no.Value(now) })
		time.Sleep(5 * time.Second)
		p.look()
		require.Contains(t, p.differs[0].Detail, "far has the nodes a, z")
		require.Nil(t, p.differs[1])
		require.Equal(t, "no", p.refusals[0][0].By)
		require.True(t, p.Admitted())
		require.True(t, p.Counts(0))
		require.Nil(t, p.Roster.Refused())
		time.Sleep(5 * time.Second)
		p.look()
		require.Nil(t, p.differs[0])
		require.Empty(t, p.refusals[0])
	})
}

// The largest TTL and skew of all fresh lists count, which node says so is told once, and what one
// process writes another one does not hide.
func TestLongestIsThatOfAllLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p, q := f.begin("p", "a b c"), f.begin("q", "a b c")
		q.cfg.MaxTTL, q.self.MaxTTL = time.Hour, time.Hour
		require.True(t, q.enter(t))
		require.True(t, p.enter(t))
		require.Equal(t, time.Hour, p.limits.TTL())
		require.Len(t, p.longer, 1)
		require.Contains(t, p.longer[0].Detail, "a TTL of 1h0m0s by p:roster on at a")
		_, err := p.Join(t.Context(), 1, "1"+id(f["b"])[1:], time.Minute)
		require.Equal(t, wire.Quarantined, wire.FaultOf(err).Condition)
		for range 7 {
			time.Sleep(5 * time.Second)
			p.look()
		}
		require.Zero(t, p.limits.TTL()-10*time.Second, "its list is not fresh any more")
	})
}

// That a node cannot be told is told once, and so is that it can again. It is there all the same.
func TestUnwrittenIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		require.True(t, p.enter(t))
		f["b"].set(func() { f["b"].refuses = &wire.Fault{Condition: wire.NoPermission, Detail: "no right"} })
		f["c"].set(func() { f["c"].silent = true })
		for range 10 {
			time.Sleep(5 * time.Second)
			p.look()
		}
		require.Equal(t, []string{"1 noperm: it cannot keep who uses it: no right"}, p.unwritten)
		require.True(t, p.Admitted(), "a quorum answers")
		require.True(t, p.Counts(1))
		require.False(t, p.Counts(2))
		f["b"].set(func() { f["b"].refuses = nil })
		time.Sleep(5 * time.Second)
		p.look()
		require.Equal(t, []string{"1 noperm: it cannot keep who uses it: no right", "1 <nil>"}, p.unwritten)
		require.Contains(t, f["b"].has(), "list of p")
	})
}

// By how much a server's clock leads is kept as the last one said who was sure.
func TestLeadIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("abc")
		p := f.begin("p", "a b c")
		ahead := 3 * time.Second
		p.cfg.Leads = func(clock.Instant) []*time.Duration { return []*time.Duration{nil, &ahead, nil} }
		require.True(t, p.enter(t))
		q := f.begin("q", "a b c")
		q.join(t)
		require.Nil(t, q.leads[0])
		require.Equal(t, ahead, *q.leads[1])
	})
}

// A server has one vote, and a node one server.
func TestServerHasOneVote(t *testing.T) {
	f := newFleet("abc")
	p := f.begin("p", "a b c")
	require.Empty(t, p.Claim(0, "x"))
	require.Empty(t, p.Claim(0, "x"))
	require.Equal(t, "at a", p.Claim(1, "x"))
	require.Empty(t, p.Claim(0, "y"))
	require.Empty(t, p.Claim(1, "x"))
	require.True(t, slices.ContainsFunc(p.seats, func(s seat) bool { return s.claim == "y" }))
}
