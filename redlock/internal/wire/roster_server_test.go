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

// registrar tells a server who uses it.
type registrar struct {
	t *testing.T
	n *valkeytest.Node
}

// say writes entries, takes others back, and returns what was there before.
func (r registrar) say(write []Entry, back ...[2]string) *Roster {
	r.t.Helper()
	a, err := r.call(RosterWords(back, write))
	require.NoError(r.t, err)
	require.Equal(r.t, OK, a.Verdict)
	return a.More().Roster
}

func (r registrar) call(words []string) (Answer, error) {
	keys := RosterKeys("p")
	got := ask(r.t, r.n.Client(), nil, &Call{Op: Enroll, Keys: &keys, Roster: words})[0]
	return got.Answer, got.Err
}

// older lets what is there have been so long ago.
func (r registrar) older(by time.Duration) {
	r.t.Helper()
	values, err := r.n.Do(r.t, "HGETALL", "p:roster").AsStrMap()
	require.NoError(r.t, err)
	for field, value := range values {
		var ms int64
		_, err := fmt.Sscan(value, &ms)
		require.NoError(r.t, err)
		_, rest, _ := strings.Cut(value, " ")
		require.NoError(r.t, r.n.Do(r.t, "HSET", "p:roster", field, fmt.Sprint(ms-by.Milliseconds())+" "+rest).Error())
	}
}

func listBy(who string, names ...string) Entry {
	return Entry{Field: append([]string{RosterList, "true", "10s", "2s"}, names...), Says: []string{who}, Life: time.Minute}
}

// What processes write is there for as long as it is fresh, and is answered as it was before.
func TestRosterIsKept(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	require.Empty(t, r.say(nil).Entries)
	exists, err := r.n.Do(t, "EXISTS", "p:roster").AsInt64()
	require.NoError(t, err)
	require.Zero(t, exists, "who reads writes nothing")

	all := []Entry{
		{Field: []string{RosterServer, "a b", "0123"}, Says: []string{"", "h:1"}, Life: 10 * time.Second},
		listBy("ann, 1", "a b", "c+d"),
		{Field: []string{RosterRefused, "bob\n"}, Says: []string{"another_list", "x"}, Life: time.Minute},
	}
	require.Empty(t, r.say(all).Entries)
	expires, err := r.n.Do(t, "PTTL", "p:roster").AsInt64()
	require.NoError(t, err)
	require.Greater(t, expires, (47 * time.Hour).Milliseconds())
	is := r.say(nil)
	require.Len(t, is.Entries, 3)
	require.Equal(t, []string{"?", "h:1"}, is.Entries[0].Says)
	require.Equal(t, all[1].Field, is.Entries[1].Field)
	require.Equal(t, []string{"ann, 1"}, is.Entries[1].Says)
	require.Equal(t, []string{RosterRefused, "bob?"}, is.Entries[2].Field)

	r.older(11 * time.Second)
	is = r.say(nil)
	require.Len(t, is.Entries, 2, "its life is over")
	require.Len(t, is.Stale, 1)
	require.GreaterOrEqual(t, is.Entries[0].Age, 11*time.Second)
	require.Len(t, r.say(nil, is.Stale...).Stale, 1)
	require.Empty(t, r.say(nil).Stale, "who writes removes it")
}

// Another type of value is named, what is no entry is none, and a full server says that it keeps
// nothing. Something under the name that is kept is told of.
func TestForeignRoster(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	require.NoError(t, r.n.Do(t, "SET", "p:roster", "x").Error())
	_, err := r.call(RosterWords(nil, nil))
	require.Equal(t, Damaged, FaultOf(Diagnose(err)).Condition)
	require.NoError(t, r.n.Do(t, "DEL", "p:roster").Error())
	require.False(t, r.say(nil).Reserved)
	require.NoError(t, r.n.Do(t, "SET", "p:nodes", "x").Error())
	require.True(t, r.say(nil).Reserved)
	now, far := fmt.Sprint(time.Now().UnixMilli()), strings.Repeat("9", 400)
	for field, value := range map[string]string{
		"x": "y", "list true 1s 1s a": far + " " + far + " x", "at a": now + " 60000 x y", "list true 1s 1s": now + " 60000 x", "other x": now + " 60000 x",
		"refused x": now + " 60000 y", "list true 1s 1s b": now + " -1 x", "list true 1s 1s c": now, "": "",
	} {
		require.NoError(t, r.n.Do(t, "HSET", "p:roster", field, value).Error())
	}
	is := r.say(nil)
	require.Empty(t, is.Entries)
	require.Len(t, is.Stale, 9)
	require.NoError(t, r.n.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	_, err = r.call(RosterWords(nil, []Entry{listBy("x", "a")}))
	require.Equal(t, OutOfMemory, FaultOf(Diagnose(err)).Condition)
}

// Whatever a server sends for a roster is read without harm.
func TestParseRosterIsSafe(t *testing.T) {
	word := rapid.OneOf(rapid.String(), rapid.StringMatching(`(list|at|refused|lead)( [0-9a-f%,-]{0,20}){0,6}`), rapid.StringMatching(`[0-9]{0,20} [0-9]{0,20}( [a-z,%0-9]{0,8}){0,4}`))
	rapid.Check(t, func(rt *rapid.T) {
		fields := rapid.MapOf(word, word).Draw(rt, "fields")
		r := ParseRoster(fields, time.Hour)
		require.Len(rt, fields, len(r.Entries)+len(r.Stale))
		for _, e := range r.Entries {
			require.GreaterOrEqual(rt, e.Age, time.Duration(0))
			for _, text := range append(e.Field, e.Says...) {
				require.LessOrEqual(rt, len(text), 4*maxSaid)
			}
			switch e.Field[0] {
			case RosterList:
				require.GreaterOrEqual(rt, len(e.Field), 5)
			case RosterServer:
				require.GreaterOrEqual(rt, len(e.Says), 2)
			default:
				require.Equal(rt, RosterRefused, e.Field[0])
			}
		}
	})
}
