package membership

import (
	"fmt"
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

// fakeNode is a node that keeps what is sent to it.
type fakeNode struct {
	address string
	status  node.Status
	sent    []*node.Request
}

func (n *fakeNode) Send(r *node.Request) error {
	n.sent = append(n.sent, r)
	return nil
}

func (n *fakeNode) Status() *node.Status { return &n.status }

func (n *fakeNode) Address() string { return n.address }

func (n *fakeNode) Reply(_ *wire.Call, a node.Answer) vote.Reply {
	return vote.Reply{Answer: a.Answer, Err: a.Err, Unsent: a.Unsent, At: a.Received}
}

// mode is what the request asks that was sent as the n-th, from 0.
func (n *fakeNode) mode(i int) wire.Mode { return wire.Mode(n.sent[i].Call.Members[0]) }

// answer answers that request.
func (n *fakeNode) answer(i int, verdict wire.Verdict, says *wire.Members) {
	n.sent[i].To.Answered(n.sent[i], node.Answer{Answer: wire.Answer{Verdict: verdict}.With(wire.More{Members: says})})
}

// process is a process with fake nodes, and what it has observed.
type process struct {
	*Membership

	nodes  []*fakeNode
	limits Limits
	work   sync.WaitGroup

	mu        sync.Mutex
	unwritten map[int]*wire.Fault
	differs   map[int]*wire.Fault
	longer    []*wire.Fault
	leads     map[int]*time.Duration
}

func (p *process) Lead(i int, lead *time.Duration, _ clock.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leads[i] = lead
}

func (p *process) Unwritten(i int, why *wire.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unwritten[i] = why
}

func (p *process) Differs(i int, why *wire.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.differs[i] = why
}

func (p *process) Longer(why *wire.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longer = append(p.longer, why)
}

func newProcess(nodes int) *process {
	p := &process{unwritten: make(map[int]*wire.Fault), differs: make(map[int]*wire.Fault), leads: make(map[int]*time.Duration)}
	for i := range nodes {
		p.nodes = append(p.nodes, &fakeNode{address: fmt.Sprintf("%c:1", 'a'+i)})
	}
	keys := wire.MembersKeys("p")
	p.Membership = New(Config{
		Nodes: nodes, Node: func(i int) Node { return p.nodes[i] }, Need: nodes/2 + 1,
		Keys: &keys, Identity: "me", MaxTTL: 10 * time.Second, Skew: 2 * time.Second, RestartGate: true, TakesPart: true,
		Timeout: time.Second, LookEvery: 5 * time.Second, Quarantine: func() time.Duration { return 14 * time.Second }, Lifetime: 13 * time.Second,
		Limits: &p.limits, Clock: clock.New(), Waits: &vote.Waits{},
		Leads:      func(clock.Instant) []*time.Duration { return make([]*time.Duration, nodes) },
		Background: p.work.Go, Observer: p,
	})
	return p
}

// joins has all servers join, and returns what comes of that.
func (p *process) joins(t *testing.T) <-chan error {
	errs := make(chan error, len(p.nodes))
	for i := range p.nodes {
		go func() {
			_, err := p.Join(t.Context(), i, fmt.Sprint("id", i), time.Hour)
			errs <- err
		}()
	}
	return errs
}

// says has each node answer its n-th request, which asks that.
func (p *process) says(t *testing.T, nth int, want wire.Mode, verdict wire.Verdict, says *wire.Members) {
	synctest.Wait()
	for i, n := range p.nodes {
		require.Len(t, n.sent, nth+1, "node %d", i)
		require.Equal(t, want, n.mode(nth))
		n.answer(nth, verdict, says)
	}
}

// begun is a process of which all servers count.
func begun(t *testing.T, nodes int) *process {
	p := newProcess(nodes)
	errs := p.joins(t)
	p.says(t, 0, wire.Asking, wire.OK, p.list("me"))
	p.says(t, 1, wire.Entering, wire.OK, p.list("me"))
	for range nodes {
		require.NoError(t, <-errs)
	}
	return p
}

// list is that of a node on which that process has written all servers.
func (p *process) list(by string) *wire.Members {
	m := &wire.Members{Nodes: len(p.nodes), At: time.Hour}
	for i, n := range p.nodes {
		m.Servers = append(m.Servers, wire.Server{ID: fmt.Sprint("id", i), By: by, Address: n.address})
	}
	return m
}

// What was written for a process that one node then refuses is taken back from the others.
func TestWrittenInVainIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(3)
		errs := p.joins(t)
		none := &wire.Members{Nodes: 3, At: time.Hour}
		p.says(t, 0, wire.Asking, wire.OK, none)
		synctest.Wait()
		for i, n := range p.nodes {
			require.Equal(t, wire.Entering, n.mode(1))
			if i == 1 {
				n.answer(1, wire.Refused, p.list("other"))
			} else {
				n.answer(1, wire.OK, p.list("me"))
			}
		}
		synctest.Wait()
		for i, want := range []int{3, 2, 3} {
			n := p.nodes[i]
			require.Len(t, n.sent, want, "node %d", i)
			if want == 3 {
				require.Equal(t, wire.Leaving, n.mode(2))
				n.answer(2, wire.OK, none)
			}
		}
		for range 3 {
			require.Equal(t, wire.AnotherList, wire.FaultOf(<-errs).Condition)
		}
	})
}

// A server that counts for one node does not count for another one, in whatever order they join.
func TestServerThatCountsDoesNotJoinAgain(t *testing.T) {
	for _, first := range []int{0, 2} {
		p := newProcess(3)
		p.seats[first] = seat{id: "x", counts: true}
		ids := make([]vouched, 3)
		ids[first].id, ids[1].id = "x", "x"
		replies := make([]vote.Reply, 3)
		replies[1].Verdict = wire.OK
		j := &joining{seat: 1, id: "x", age: time.Hour}
		require.Empty(t, p.answered([]*joining{j}, replies, ids))
		require.Equal(t, wire.Duplicate, wire.FaultOf(j.why).Condition)
		require.Empty(t, ids[1].id)
	}
}

// What others have said is taken over from each answer, and forgotten with it.
func TestLimitsAndLeadsAreThoseOfTheNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := begun(t, 3)
		require.Zero(t, p.limits.TTL())
		time.Sleep(5 * time.Second) // a refresh is due
		p.Refresh()
		ahead, says := 3*time.Second, p.list("other")
		says.MaxTTL, says.Skew, says.Lead = time.Minute, 4*time.Second, &ahead
		p.says(t, 2, wire.Asking, wire.OK, says)
		synctest.Wait()
		require.Equal(t, time.Minute, p.limits.TTL())
		require.Equal(t, 4*time.Second, p.limits.Skew())
		require.Equal(t, map[int]*time.Duration{0: &ahead, 1: &ahead, 2: &ahead}, p.leads)
		p.says(t, 3, wire.Refreshing, wire.OK, p.list("me"))
		p.work.Wait()
		require.Zero(t, p.limits.TTL())
		require.Zero(t, p.limits.Skew())
		p.Refresh() // which is not due
		require.Len(t, p.nodes[0].sent, 4)
	})
}

// A process whose nodes were a quorum does not stop for what it finds later, and tells what differs
// and when that is over.
func TestDifferenceIsToldInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := begun(t, 3)
		other := &wire.Members{Nodes: 3, At: time.Hour, Servers: []wire.Server{
			{ID: fmt.Sprintf("%040d", 7), By: "other", Address: "z:1"}, {ID: "id0", By: "me", Address: "a:1"},
		}}
		for i, verdict := range []wire.Verdict{wire.Refused, wire.OK} {
			time.Sleep(5 * time.Second)
			p.Refresh()
			p.says(t, 2+2*i, wire.Asking, wire.OK, other)
			p.says(t, 3+2*i, wire.Refreshing, verdict, other)
			p.work.Wait()
			require.Len(t, p.differs, 3)
			for _, why := range p.differs {
				if verdict == wire.OK {
					require.Nil(t, why)
					continue
				}
				require.Equal(t, wire.AnotherList, why.Condition)
				require.Contains(t, why.Detail, "z:1")
			}
			_, err := p.Join(t.Context(), 1, "id1", time.Hour)
			require.NoError(t, err, "it counts as ever")
		}
	})
}

// That a node cannot be told is told once, when it has lasted for longer than a look takes to
// notice what is worse, and so is that it can again.
func TestUnwrittenIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := begun(t, 3)
		full := p.list("me")
		full.Unwritten = "OOM command not allowed"
		for i := range 3 {
			time.Sleep(5 * time.Second)
			p.Refresh()
			p.says(t, 2+2*i, wire.Asking, wire.OK, p.list("me"))
			p.says(t, 3+2*i, wire.Refreshing, wire.OK, full)
			p.work.Wait()
			if i < 2 {
				require.Empty(t, p.unwritten)
				continue
			}
			require.Len(t, p.unwritten, 3, "10 s after the first")
			for _, why := range p.unwritten {
				require.Equal(t, wire.OutOfMemory, why.Condition)
				require.Equal(t, "it cannot keep who uses it: "+full.Unwritten, why.Detail)
			}
		}
		clear(p.unwritten)
		time.Sleep(5 * time.Second)
		p.Refresh()
		p.says(t, 8, wire.Asking, wire.OK, full)
		p.says(t, 9, wire.Refreshing, wire.OK, full)
		p.work.Wait()
		require.Empty(t, p.unwritten)
		time.Sleep(5 * time.Second)
		p.Refresh()
		p.says(t, 10, wire.Asking, wire.OK, p.list("me"))
		p.says(t, 11, wire.Refreshing, wire.OK, p.list("me"))
		p.work.Wait()
		require.Equal(t, map[int]*wire.Fault{0: nil, 1: nil, 2: nil}, p.unwritten)
	})
}

// A server that refuses to keep the list, for whatever reason and for however long, is there: it
// counts, and others hear of it when it does again. One that says nothing for long is gone: it does
// not count until it has joined again.
func TestServerThatRefusesTheListIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := begun(t, 3)
		nth := 2
		refresh := func(answer func(n *fakeNode, nth int)) {
			time.Sleep(5 * time.Second)
			p.Refresh()
			for range 2 {
				synctest.Wait()
				for i, n := range p.nodes {
					require.Len(t, n.sent, nth+1, "node %d", i)
					if i == 0 {
						answer(n, nth)
					} else {
						n.answer(nth, wire.OK, p.list("me"))
					}
				}
				nth++
			}
			p.work.Wait()
		}
		for range 3 * Absence / (5 * time.Second) {
			refresh(func(n *fakeNode, nth int) {
				n.sent[nth].To.Answered(n.sent[nth], node.Answer{Answer: wire.Answer{Verdict: wire.Failed}, Err: &wire.Fault{Condition: wire.NoPermission, Detail: "no right"}})
			})
			require.Less(t, p.now().Sub(p.seats[0].seen), Absence, "else it is dropped with the next one")
		}
		require.True(t, p.Counts(0))
		refresh(func(n *fakeNode, nth int) { n.answer(nth, wire.OK, p.list("me")) })
		require.Contains(t, strings.Join(p.nodes[1].sent[nth-1].Call.Members, " "), "id0 0 a%3A1", "it was seen now")
		for range Absence/(5*time.Second) + 1 {
			time.Sleep(5 * time.Second)
			p.Refresh()
			synctest.Wait()
			time.Sleep(2 * time.Second) // nobody answers
			synctest.Wait()
		}
		require.False(t, p.Counts(0))
	})
}

// Whatever others use, a process writes for as long as its own leases need, so that nothing lives
// by what it has heard. Which node says that others use more is told once.
func TestLongerQuarantineIsToldWithItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := begun(t, 3)
		p.cfg.Quarantine = func() time.Duration { return max(14*time.Second, p.limits.TTL()) }
		more := p.list("other")
		more.MaxTTL, more.Skew = 24*time.Hour, time.Minute
		var lifetimes []string
		for i := range 2 {
			time.Sleep(5 * time.Second)
			p.Refresh()
			for k := range 2 {
				synctest.Wait()
				for at, n := range p.nodes {
					lifetimes = append(lifetimes, n.sent[2+2*i+k].Call.Members[4])
					says := p.list("me")
					if at == 1 {
						says = more
					}
					n.answer(2+2*i+k, wire.OK, says)
				}
			}
			p.work.Wait()
		}
		require.Equal(t, slices.Repeat([]string{"13000"}, 12), lifetimes)
		require.Len(t, p.longer, 1)
		require.Contains(t, p.longer[0].Detail, "a TTL of 24h0m0s by p:members on b:1, a skew of 1m0s by p:members on b:1")
		require.Equal(t, 24*time.Hour, p.limits.TTL())
	})
}

// Ids that begin alike are shown from where they differ.
func TestIDsAreShownApart(t *testing.T) {
	for _, test := range [][4]string{
		{"abcdefghijkl", "xbcdefghijkl", "abcdefgh", "xbcdefgh"},
		{"abcdefghijkl", "abcdefgxijkl", "abcdefgh", "abcdefgx"},
		{"abcdefghijkl", "abcdefghijkx", "...l", "...x"},
		{"abcdefghi", "abcdefgh", "...i", "..."},
	} {
		one, other := apart(test[0], test[1])
		require.Equal(t, test[2:], []string{one, other})
	}
}
