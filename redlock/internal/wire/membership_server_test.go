package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

const membersName = "p:members"

// registrar tells a server who uses it.
type registrar struct {
	t *testing.T
	n *valkeytest.Node
}

// say tells it of servers, each a letter, and returns whether they agree, and the servers that are
// on the list after that.
func (r registrar) say(mode Mode, who string, servers string, change ...func(*Membership)) (Verdict, string, *Members) {
	r.t.Helper()
	m := &Membership{
		Mode: mode, Nodes: 3, MaxTTL: 10 * time.Second, Skew: 2 * time.Second, Lifetime: time.Minute, Grace: time.Minute, Identity: who,
	}
	for _, s := range servers {
		m.Servers = append(m.Servers, Server{ID: string(s), Address: "host-" + string(s) + ":1 x"})
	}
	for _, c := range change {
		c(m)
	}
	a := r.call(m)
	require.NoError(r.t, a.err)
	var on []string
	for _, s := range a.More().Members.Servers {
		on = append(on, s.ID)
	}
	return a.Verdict, strings.Join(on, ""), a.More().Members
}

type registered struct {
	Answer
	err error
}

func (r registrar) call(m *Membership) registered {
	c := &Call{Op: Belong, Keys: &Keys{Lock: membersName}, Members: m.Words()}
	got := ask(r.t, r.n.Client(), nil, c)[0]
	return registered{got.Answer, got.Err}
}

// older lets what is on the list have been seen so long ago.
func (r registrar) older(by time.Duration) {
	r.t.Helper()
	text, err := r.n.Do(r.t, "GET", membersName).ToString()
	require.NoError(r.t, err)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		fields := strings.Split(line, " ")
		places := []int{1}
		if i == 0 {
			places = []int{3, 5, 7}
		}
		for _, p := range places {
			var ms int64
			_, err := fmt.Sscan(fields[p], &ms)
			require.NoError(r.t, err)
			fields[p] = fmt.Sprint(ms - by.Milliseconds())
		}
		lines[i] = strings.Join(fields, " ")
	}
	require.NoError(r.t, r.n.Do(r.t, "SET", membersName, strings.Join(lines, "\n")).Error())
}

func TestBelong(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	expect := func(want Verdict, on string, mode Mode, who, servers string, change ...func(*Membership)) *Members {
		t.Helper()
		got, has, m := r.say(mode, who, servers, change...)
		require.Equal(t, want, got, "%s of %s by %s", mode, servers, who)
		require.Equal(t, on, has)
		return m
	}
	age := func(d time.Duration) func(*Membership) {
		return func(m *Membership) {
			for i := range m.Servers {
				m.Servers[i].Age = d
			}
		}
	}

	expect(OK, "", Asking, "x", "abc") // nothing is written
	expect(OK, "ab", Entering, "x", "ab")
	expect(OK, "abc", Entering, "y", "abc")
	m := expect(OK, "abc", Asking, "y", "bc")
	require.Equal(t, "host-a:1 x", m.Servers[0].Address)
	require.Equal(t, []string{"y", "y", "y"}, []string{m.Servers[0].By, m.Servers[1].By, m.Servers[2].By})
	expect(Refused, "abc", Asking, "z", "abd")
	expect(Refused, "abc", Entering, "z", "abd")
	expect(Refused, "abc", Refreshing, "z", "d")
	expect(Refused, "abc", Asking, "z", "abc", func(m *Membership) { m.Nodes = 5 })

	// What nobody has seen for a lifetime is an empty seat for those that go on, and for those that
	// begin a grace later, or if it was at the address of another one of theirs.
	r.older(50 * time.Second)
	expect(OK, "abc", Refreshing, "x", "ab")
	expect(OK, "abc", Refreshing, "x", "c", age(55*time.Second)) // no news
	r.older(50 * time.Second)
	expect(Refused, "abc", Asking, "z", "abd")
	expect(OK, "abc", Asking, "z", "abd", func(m *Membership) { m.Servers[2].Address = "host-c:1 x" })
	expect(OK, "abcd", Refreshing, "x", "abd")
	expect(OK, "abcd", Asking, "z", "abd") // all of them are others'
	expect(OK, "abcd", Refreshing, "x", "abde", func(m *Membership) { m.Servers[3].Age = time.Hour })
	r.older(61 * time.Second)
	expect(Refused, "abd", Asking, "z", "e")
	r.older(61 * time.Second)
	expect(OK, "", Asking, "z", "e")

	// A process takes back what it has written, if nobody else has written it since.
	expect(OK, "ab", Entering, "x", "ab")
	m = expect(OK, "abc", Entering, "y", "abc")
	written := func(m2 *Membership) {
		for i := range m2.Servers {
			m2.Servers[i].Written = m.At - m.Servers[i].Age
		}
	}
	expect(OK, "abc", Leaving, "z", "abc", written)
	expect(OK, "abc", Refreshing, "x", "b")
	expect(OK, "b", Leaving, "y", "abc", written)
	expect(OK, "b", Leaving, "y", "abc", written)
}

// The largest TTL and skew that any process uses are kept for as long as it says so, and a lifetime
// and a grace.
func TestLargestIsKept(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	large := func(m *Membership) {
		m.MaxTTL, m.Skew, m.Lifetime = time.Hour, 50*time.Second, 70*time.Minute
	}
	_, _, m := r.say(Entering, "x", "a")
	require.Equal(t, 10*time.Second, m.MaxTTL)
	_, _, m = r.say(Asking, "y", "a", large)
	require.Equal(t, 10*time.Second, m.MaxTTL)
	_, _, m = r.say(Refreshing, "y", "a", large)
	require.Equal(t, []time.Duration{time.Hour, 50 * time.Second}, []time.Duration{m.MaxTTL, m.Skew})
	r.older(70 * time.Minute)
	_, on, m := r.say(Refreshing, "x", "")
	require.Equal(t, []time.Duration{time.Hour, 50 * time.Second}, []time.Duration{m.MaxTTL, m.Skew})
	require.Equal(t, "a", on, "also what others have said lives as long")
	r.older(2 * time.Minute)
	_, _, m = r.say(Asking, "x", "")
	require.Zero(t, m.MaxTTL)
	require.Zero(t, m.Skew)
	_, _, m = r.say(Refreshing, "x", "")
	require.Equal(t, []time.Duration{10 * time.Second, 2 * time.Second}, []time.Duration{m.MaxTTL, m.Skew})
}

// A number of nodes that is damaged is put right by who goes on with just the servers that are
// there, and told once. One that is another process's is not.
func TestDamagedNumberOfNodes(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	damage := func(head string) {
		text, err := r.n.Do(t, "GET", membersName).ToString()
		require.NoError(t, err)
		_, lines, _ := strings.Cut(text, "\n")
		now := time.Now().UnixMilli()
		require.NoError(t, r.n.Do(t, "SET", membersName, fmt.Sprintf(head, now)+"\n"+lines).Error())
	}
	expect := func(want Verdict, nodes int, mode Mode, servers string, has int) {
		t.Helper()
		got, on, m := r.say(mode, "x", servers, func(m *Membership) { m.Nodes = has })
		require.Equal(t, want, got)
		require.Equal(t, "abc", on)
		require.Equal(t, nodes, m.Nodes)
	}
	_, _, _ = r.say(Entering, "x", "abc")
	const four = "1 4 10000 %[1]d 2000 %[1]d 13000 %[1]d - -"
	for head, nodes := range map[string]int{four: 4, "1 3 1e4 %d": 0, "1 3": 0, "": 0} {
		damage(head)
		expect(Refused, nodes, Asking, "abc", 3)
		expect(Refused, nodes, Entering, "abc", 3)
		expect(Refused, nodes, Refreshing, "abc", 3)
		expect(OK, 3, Refreshing, "abc", 3)
		expect(OK, 3, Asking, "abc", 3)
	}
	damage(four)
	expect(Refused, 4, Refreshing, "ab", 3)
	expect(Refused, 4, Refreshing, "abd", 3)
	expect(Refused, 4, Refreshing, "abcd", 5)
	expect(OK, 4, Refreshing, "abc", 4)
	for range 3 { // two lists in flight find each other, whoever wrote last
		expect(Refused, 4, Refreshing, "abc", 5)
		expect(Refused, 5, Refreshing, "abc", 4)
	}
}

// A lifetime that is longer than the leases for which it is there keeps nobody out.
func TestLifetimeIsThatOfATTL(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	brief := func(m *Membership) { m.Lifetime = 13 * time.Second }
	begin := func(ttl, lifetime time.Duration) {
		now := time.Now().UnixMilli()
		require.NoError(t, r.n.Do(t, "SET", membersName, fmt.Sprintf("1 3 %d %[3]d 2000 %[3]d %[2]d %[3]d - -\nz %[3]d far:1 y here", ttl.Milliseconds(), lifetime.Milliseconds(), now)).Error())
	}
	const all = 48 * time.Hour
	begin(10*time.Second, all)
	r.older(70 * time.Second)
	got, on, m := r.say(Asking, "x", "abc", brief)
	require.Equal(t, Refused, got)
	require.Equal(t, "z", on)
	require.Equal(t, 10*time.Second, m.MaxTTL)
	r.older(10 * time.Second)
	got, on, m = r.say(Asking, "x", "abc", brief)
	require.Equal(t, OK, got, "1.2 TTLs and skews, 2 s and the grace")
	require.Empty(t, on)
	require.Zero(t, m.MaxTTL)
	begin(time.Hour, all)
	r.older(50 * time.Minute)
	got, on, m = r.say(Asking, "x", "abc", brief)
	require.Equal(t, Refused, got)
	require.Equal(t, "z", on)
	require.Equal(t, time.Hour, m.MaxTTL, "leases that long may live")
}

// What no process may have said is not believed.
func TestHostileMembers(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	now := time.Now().UnixMilli()
	for _, n := range []string{"999999999999999", "9000000000000", "172800001"} {
		require.NoError(t, r.n.Do(t, "SET", membersName, fmt.Sprintf("1 %s %s %s %s %s %s %s -1%s -\nz %d far x here", n, n, n, n, n, n, n, n+n, now-3*time.Hour.Milliseconds())).Error())
		got, on, m := r.say(Entering, "x", "abc")
		require.Equal(t, OK, got, n)
		require.Equal(t, "abc", on)
		require.Equal(t, 10*time.Second, m.MaxTTL)
	}
	// A line that is too long for an answer, though it parses.
	long := fmt.Sprintf("1 3 0 0 0 0 0 0 0 -\nz %d %s x here", now, strings.Repeat("a", 1<<20))
	require.NoError(t, r.n.Do(t, "SET", membersName, long).Error())
	got, on, _ := r.say(Asking, "x", "abc")
	require.Equal(t, OK, got)
	require.Empty(t, on)
}

// Nobody waits for a server that is known to be gone for longer than a lifetime.
func TestGoneServers(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	gone := func(id string) func(*Membership) {
		return func(m *Membership) { m.Servers = append(m.Servers, Server{ID: id, Address: "elsewhere:1", Gone: true}) }
	}
	expect := func(want Verdict, on string, mode Mode, who, servers string, change ...func(*Membership)) *Members {
		t.Helper()
		got, has, m := r.say(mode, who, servers, change...)
		require.Equal(t, want, got, "%s of %s by %s", mode, servers, who)
		require.Equal(t, on, has)
		return m
	}
	expect(OK, "abc", Entering, "x", "abc")
	expect(Refused, "abc", Asking, "z", "abd", gone("c"))
	r.older(61 * time.Second)
	expect(Refused, "abc", Asking, "z", "abd")
	expect(OK, "abc", Asking, "z", "abd", gone("c"))
	expect(Refused, "abc", Asking, "z", "abd") // who asks writes nothing
	m := expect(OK, "abc", Refreshing, "y", "ab", gone("c"), gone("q"))
	require.True(t, m.Servers[2].Gone)
	r.older(61 * time.Second)
	expect(OK, "ab", Refreshing, "y", "ab")

	r = registrar{t, valkeytest.Start(t, 1).Node(0)}
	expect(OK, "abc", Entering, "x", "abc")
	expect(OK, "abc", Refreshing, "y", "ab", gone("c"))
	expect(Refused, "abc", Asking, "z", "abd")
	r.older(61 * time.Second)
	expect(OK, "abc", Refreshing, "y", "ab")
	expect(OK, "abc", Asking, "z", "abd")
	m = expect(OK, "abc", Refreshing, "x", "c")
	require.False(t, m.Servers[2].Gone, "it was seen again")
	r.older(61 * time.Second)
	expect(Refused, "abc", Asking, "z", "abd")
}

// By how much a server's clock leads is kept as the last one said who was sure, and by nobody who
// does not agree.
func TestLeadIsKept(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	lead := func(d time.Duration) func(*Membership) { return func(m *Membership) { m.Lead = &d } }
	_, _, m := r.say(Entering, "x", "a")
	require.Nil(t, m.Lead)
	for _, d := range []time.Duration{-time.Hour, 0, 5 * time.Millisecond} {
		_, _, m = r.say(Refreshing, "x", "a", lead(d))
		require.Equal(t, d, *m.Lead)
	}
	_, _, m = r.say(Refreshing, "x", "a")
	require.Equal(t, 5*time.Millisecond, *m.Lead, "who is not sure changes nothing")
	got, _, m := r.say(Refreshing, "y", "b c d", lead(time.Hour))
	require.Equal(t, Refused, got)
	require.Equal(t, 5*time.Millisecond, *m.Lead)
	_, _, m = r.say(Refreshing, "x", "a", lead(200*365*24*time.Hour))
	require.Equal(t, 5*time.Millisecond, *m.Lead)
}

// A server has an id of its own if anybody wants it to, also when it is only asked, and keeps it.
func TestServerID(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	_, _, m := r.say(Asking, "x", "")
	require.Empty(t, m.ID)
	first := NewServerID()
	for _, id := range []string{first, NewServerID()} {
		_, _, m = r.say(Asking, "x", "", func(m *Membership) { m.NewID = id })
		require.Equal(t, first, m.ID)
	}
	_, on, m := r.say(Entering, "x", "", func(m *Membership) { m.Servers = []Server{{ID: first, Address: "a"}} })
	require.Equal(t, first, m.ID)
	require.Equal(t, first, on)
}

// What another version has written is left as it is, and what is no text is named. What is no list
// counts as none.
func TestForeignMembers(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	ask := &Membership{Mode: Entering, Nodes: 3, Lifetime: time.Minute, Identity: "x", Servers: []Server{{ID: "a", Address: "a"}}}
	require.NoError(t, r.n.Do(t, "SET", membersName, "2 whatever").Error())
	require.Equal(t, OtherVersion, FaultOf(Diagnose(r.call(ask).err)).Condition)
	text, err := r.n.Do(t, "GET", membersName).ToString()
	require.NoError(t, err)
	require.Equal(t, "2 whatever", text)
	require.NoError(t, r.n.Do(t, "DEL", membersName).Error())
	require.NoError(t, r.n.Do(t, "RPUSH", membersName, "x").Error())
	require.Equal(t, Damaged, FaultOf(Diagnose(r.call(ask).err)).Condition)
	rapid.Check(t, func(rt *rapid.T) {
		junk := rapid.OneOf(rapid.String(), rapid.StringMatching(`1 [0-9 -]{0,60}-?(\n[a-z]{0,3} [0-9]{0,20} [a-z%]{0,4} [a-z]{0,4} (here|gone|)){0,5}`)).Draw(rt, "text")
		require.NoError(rt, r.n.Do(t, "SET", membersName, junk).Error())
		got := r.call(ask)
		if got.err != nil {
			require.Equal(rt, OtherVersion, FaultOf(Diagnose(got.err)).Condition, "%v", got.err)
			return
		}
		require.NotNil(rt, got.More().Members)
	})
}

// A list is read that has as many lines as there may be, each as long as it may be.
func TestLongestMembersAreRead(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	long := strings.Repeat("x", maxMemberField)
	now := time.Now().UnixMilli()
	lines := []string{fmt.Sprintf("1 3 10000 %d 2000 %[1]d 60000 %[1]d - -", now)}
	for i := range 64 {
		lines = append(lines, fmt.Sprintf("id-%d %d %s %s here", i, now, long, long))
	}
	require.NoError(t, r.n.Do(t, "SET", membersName, strings.Join(lines, "\n")).Error())
	_, _, m := r.say(Asking, "x", "a")
	require.Len(t, m.Servers, 64)
}

// A full server cannot be told, and agrees all the same.
func TestBelongOnAFullServer(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	require.NoError(t, r.n.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	got, _, m := r.say(Entering, "x", "a")
	require.Equal(t, OK, got)
	require.Contains(t, m.Unwritten, "OOM")
}

// Whatever a server sends for a list is read without harm.
func FuzzParseMembers(f *testing.F) {
	f.Add("1 3 10000 5 2000 5 12000 5 -12 -\nabc 5 host%3A1 me gone")
	f.Add("1 3 9000000000000 5 999999999 5 12000 5 - s-_x\n\nabc 5 % \x00\nabc 99999999999999999999 a b")
	f.Add("1 3 10000 5 2000 5 12000 5 -99999999999999 -")
	f.Fuzz(func(t *testing.T, text string) {
		m := ParseMembers(text, time.Hour)
		if m == nil {
			return
		}
		require.LessOrEqual(t, m.MaxTTL, maxMemberTTL)
		require.LessOrEqual(t, m.Skew, maxMemberSkew)
		if m.Lead != nil {
			require.Less(t, m.Lead.Abs(), maxMemberLead)
		}
		for _, s := range m.Servers {
			require.True(t, isID(s.ID))
			require.GreaterOrEqual(t, s.Age, time.Duration(0))
			require.NotContains(t, s.By+s.Address, "\n")
			require.LessOrEqual(t, len(s.By), 4*maxSaid)
		}
	})
}

// What was written before a server's clock was set back grows old from then on, also where all that
// processes do is ask.
func TestMembersOfTheFutureGrowOld(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	_, _, m := r.say(Entering, "x", "abc")
	require.Equal(t, 10*time.Second, m.MaxTTL)
	r.older(-time.Hour)
	got, on, m := r.say(Asking, "z", "abd")
	require.Equal(t, Refused, got)
	require.Equal(t, "abc", on)
	require.Equal(t, 10*time.Second, m.MaxTTL)
	r.older(121 * time.Second)
	got, on, m = r.say(Asking, "z", "abd")
	require.Equal(t, OK, got)
	require.Empty(t, on)
	require.Zero(t, m.MaxTTL)
}
