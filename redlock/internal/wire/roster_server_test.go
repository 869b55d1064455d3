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

const rosterName = "p:roster"

// registrar tells a server who uses it.
type registrar struct {
	t *testing.T
	n *valkeytest.Node
}

// say writes notes, takes others back, and returns what was there before.
func (r registrar) say(notes []Note, back ...[3]string) *Roster {
	r.t.Helper()
	a, err := r.call(RosterWords(notes, back))
	require.NoError(r.t, err)
	require.Equal(r.t, OK, a.Verdict)
	return a.More().Roster
}

func (r registrar) call(words []string) (Answer, error) {
	c := &Call{Op: Enroll, Keys: &Keys{Lock: rosterName}, Roster: words}
	got := ask(r.t, r.n.Client(), nil, c)[0]
	return got.Answer, got.Err
}

// older lets what is there have been so long ago.
func (r registrar) older(by time.Duration) {
	r.t.Helper()
	values, err := r.n.Do(r.t, "HGETALL", rosterName).AsStrMap()
	require.NoError(r.t, err)
	for field, value := range values {
		var ms int64
		_, err := fmt.Sscan(value, &ms)
		require.NoError(r.t, err)
		_, rest, _ := strings.Cut(value, " ")
		require.NoError(r.t, r.n.Do(r.t, "HSET", rosterName, field, fmt.Sprint(ms-by.Milliseconds())+" "+rest).Error())
	}
}

func listOf(by string, names ...string) *List {
	return &List{Names: names, Gate: true, MaxTTL: 10 * time.Second, Skew: 2 * time.Second, By: by}
}

// What processes write is there for as long as it is fresh, and is answered as it was before.
func TestRosterIsKept(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	require.Empty(t, r.say(nil).Values)
	exists, err := r.n.Do(t, "EXISTS", rosterName).AsInt64()
	require.NoError(t, err)
	require.Zero(t, exists, "who reads writes nothing")

	l, k := listOf("ann, 1", "a b", "c,d"), Known{Name: "a b", ID: strings.Repeat("0", RunIDLength), By: "ann, 1", Age: 2 * time.Second}
	no := Refusal{By: "bob", Why: "another_list", Names: []string{"x"}}
	was := r.say([]Note{l.Note(time.Minute), k.Note(10 * time.Second), no.Note(time.Minute), LeadNote(-3*time.Second, time.Minute)})
	require.Empty(t, was.Values)
	expires, err := r.n.Do(t, "PTTL", rosterName).AsInt64()
	require.NoError(t, err)
	require.Greater(t, expires, (47 * time.Hour).Milliseconds())

	is := r.say(nil)
	require.Len(t, is.Lists, 1)
	require.Equal(t, []string{"a b", "c,d"}, is.Lists[0].Names)
	require.Equal(t, l.Print(), is.Lists[0].Print())
	require.Equal(t, []any{"ann, 1", 10 * time.Second, 2 * time.Second}, []any{is.Lists[0].By, is.Lists[0].MaxTTL, is.Lists[0].Skew})
	require.Len(t, is.Servers, 1)
	require.Equal(t, []string{"a b", k.ID, "ann, 1"}, []string{is.Servers[0].Name, is.Servers[0].ID, is.Servers[0].By})
	require.GreaterOrEqual(t, is.Servers[0].Age, 2*time.Second)
	require.Equal(t, "another_list", is.Refused[0].Why)
	require.Equal(t, []string{"x"}, is.Refused[0].Names)
	require.Equal(t, -3*time.Second, *is.Lead)

	r.older(9 * time.Second)
	is = r.say(nil)
	require.Empty(t, is.Servers, "its life is over, by its age")
	require.Len(t, is.Lists, 1)
	r.older(time.Minute)
	require.Empty(t, r.say(nil).Values)
	exists, err = r.n.Do(t, "EXISTS", rosterName).AsInt64()
	require.NoError(t, err)
	require.Zero(t, exists, "what is not fresh is removed")
}

// Lists differ by their names, their number and the gate; entries of one list also by what leases
// may be like, so that none hides a larger one.
func TestListsAreToldApart(t *testing.T) {
	one := listOf("x", "a", "b")
	other := *one
	other.Gate = false
	require.NotEqual(t, one.Print(), other.Print())
	require.NotEqual(t, one.Print(), listOf("x", "a", "b", "c").Print())
	require.NotEqual(t, one.Print(), listOf("x", "a,b").Print())
	require.Equal(t, one.Print(), listOf("y", "a", "b").Print())
	longer := *one
	longer.MaxTTL = time.Hour
	require.Equal(t, one.Print(), longer.Print())
	require.NotEqual(t, one.Note(time.Minute).Field, longer.Note(time.Minute).Field)
}

// A process takes back what it has written, and puts back what was there, if nobody else has
// written it since.
func TestWrittenIsTakenBack(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	mine := listOf("x", "a", "b").Note(time.Minute)
	take := func(was *Roster, n Note) [3]string { return [3]string{n.Field, n.Value(was.At), was.Values[n.Field]} }
	was := r.say([]Note{mine})
	require.Len(t, r.say(nil, take(was, mine)).Lists, 1)
	require.Empty(t, r.say(nil).Lists)

	r.say([]Note{listOf("y", "a", "b").Note(time.Minute)})
	r.older(30 * time.Second)
	was = r.say([]Note{mine})
	require.Equal(t, "y", was.Lists[0].By)
	r.say(nil, take(was, mine))
	is := r.say(nil)
	require.Equal(t, "y", is.Lists[0].By)
	require.GreaterOrEqual(t, is.Lists[0].Age, 30*time.Second, "as old as it was")

	was = r.say([]Note{mine})
	r.say([]Note{listOf("z", "a", "b").Note(time.Minute)})
	r.say(nil, take(was, mine))
	require.Equal(t, "z", r.say(nil).Lists[0].By)
}

// What was written before a server's clock was set back grows old from then on, also where all that
// processes do is read.
func TestRosterOfTheFutureGrowsOld(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	r.say([]Note{listOf("x", "a", "b").Note(time.Minute)})
	r.older(-time.Hour)
	require.Len(t, r.say(nil).Lists, 1)
	r.older(61 * time.Second)
	require.Empty(t, r.say(nil).Lists)
}

// Another type of value is named, what is no entry is removed, and a full server says that it keeps
// nothing.
func TestForeignRoster(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	require.NoError(t, r.n.Do(t, "SET", rosterName, "x").Error())
	_, err := r.call(RosterWords(nil, nil))
	require.Equal(t, Damaged, FaultOf(Diagnose(err)).Condition)
	require.NoError(t, r.n.Do(t, "DEL", rosterName).Error())
	far := strings.Repeat("9", 400)
	for field, value := range map[string]string{"x": "y", "list a 1 1": far + " " + far + " gate x a", "at": "1 1", "lead": fmt.Sprint(time.Now().UnixMilli(), " 60000 -", far)} {
		require.NoError(t, r.n.Do(t, "HSET", rosterName, field, value).Error())
	}
	is := r.say(nil)
	require.Empty(t, is.Lists)
	require.Nil(t, is.Lead)
	require.NotContains(t, is.Values, "x")
	require.NoError(t, r.n.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	require.Contains(t, r.say([]Note{listOf("x", "a").Note(time.Minute)}).Unwritten, "OOM")
}

// Whatever a server sends for a roster is read without harm.
func TestParseRosterIsSafe(t *testing.T) {
	word := rapid.OneOf(rapid.String(), rapid.StringMatching(`(list|at|refused|lead)( [0-9a-f%,-]{0,20}){0,4}`), rapid.StringMatching(`[0-9]{0,20} [0-9]{0,20}( [a-z,%0-9]{0,8}){0,4}`))
	rapid.Check(t, func(rt *rapid.T) {
		r := ParseRoster(rapid.MapOf(word, word).Draw(rt, "values"), time.Hour)
		for _, l := range r.Lists {
			require.LessOrEqual(rt, l.MaxTTL, maxRosterTTL)
			require.LessOrEqual(rt, l.Skew, maxRosterSkew)
		}
		for _, k := range r.Servers {
			require.True(rt, isID(k.ID))
			require.GreaterOrEqual(rt, k.Age, time.Duration(0))
			require.LessOrEqual(rt, len(k.By), 4*maxSaid)
		}
		if r.Lead != nil {
			require.Less(rt, r.Lead.Abs(), maxRosterLead)
		}
	})
}
