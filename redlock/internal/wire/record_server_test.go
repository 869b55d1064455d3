package wire

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

const (
	thisProcess  = "0123456789abcdef0123456789abcdef01234567"
	otherProcess = "fedcba9876543210fedcba9876543210fedcba98"
	someOwner    = "host one/AAAAAAAAAAAAAAAAAAAAAA"
	someLock     = "1 " + someOwner
	nobodys      = "host one/----------------------"
)

// What a server process learns: it is the one that was meant, it does not know already, and it
// keeps what it has beyond.
func TestRestoreIsForOneProcessThatDoesNotKnow(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	const given = "1  5 1 0 4 10 20 4 1 a b   " + someOwner
	for name, test := range map[string]struct {
		process   string
		has, want string // without the version
		answer    int64
	}{
		"nothing":                  {thisProcess, "", thisProcess + " 5 1 0 4 10 20 4 1 a b   " + nobodys, 1},
		"another process is meant": {otherProcess, "", "", 0},
		"it knows":                 {thisProcess, thisProcess + " 3 1 7 3 1 2 0 0     x", thisProcess + " 3 1 7 3 1 2 0 0     x", 2},
		"old and less":             {thisProcess, otherProcess + " 3 1 7 3 1 2 0 0     x", thisProcess + " 5 1 0 4 10 20 4 1 a b   " + nobodys, 1},
		"a later grant": {thisProcess, otherProcess + " 6 2 7 3 1 2 3 1 c d   " + someOwner,
			thisProcess + " 6 2 7 4 10 20 3 1 c d   " + nobodys, 1},
		"a payload":                   {thisProcess, otherProcess + " 6 2 7 3 1 2 3 1 c d   " + someOwner + "?10.0.0.1", thisProcess + " 6 2 7 4 10 20 3 1 c d   " + nobodys, 1},
		"a payload of hyphens":        {thisProcess, otherProcess + " 6 2 7 3 1 2 3 1 c d   " + someOwner + "?" + strings.Repeat("-", 22), thisProcess + " 6 2 7 4 10 20 3 1 c d   " + nobodys, 1},
		"another attempt":             {thisProcess, " 5 2 7 3 1 2 3 1 c d   x", thisProcess + " 5 2 7 4 10 20 3 1 c d   x", 1},
		"a later completion":          {thisProcess, " 4 1 7 5 0 22 3 1 c d   x", thisProcess + " 5 1 0 5 0 22 4 1 a b   " + nobodys, 1},
		"the completion, with a pair": {thisProcess, " 4 1 7 4 11 22 3 1 c d   x", thisProcess + " 5 1 0 4 11 22 4 1 a b   " + nobodys, 1},
		"the completion, without":     {thisProcess, " 4 1 7 4 0 22 3 1 c d   x", thisProcess + " 5 1 0 4 10 20 4 1 a b   " + nobodys, 1},
		"no record":                   {thisProcess, "x", thisProcess + " 5 1 0 4 10 20 4 1 a b   " + nobodys, 3},
	} {
		k := &Keys{Lock: "{" + name + "}"}
		if test.has != "" {
			require.NoError(t, n.Do(t, "SET", k.Record(), "1 "+test.has, "PX", "7200000").Error())
		}
		restore := &Call{Op: Restore, Keys: k, Write: &Write{Process: test.process, Known: given, Lifetime: "3600000"}}
		answer, err := do(t, n.Client(), NewSet(thisProcess), restore).ToString()
		require.NoError(t, err, name)
		require.Equal(t, fmt.Sprint("0 ", test.answer), answer, name)
		text, err := n.Do(t, "GET", k.Record()).ToString()
		if test.want == "" {
			require.True(t, valkey.IsValkeyNil(err), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, "1 "+test.want, text, name)
		left, err := n.Do(t, "PTTL", k.Record()).AsInt64()
		require.NoError(t, err)
		wanted := 3_600_000
		if test.has != "" {
			wanted = 7_200_000
		}
		require.InDelta(t, wanted, left, 600_000, name)
	}
}

// What is no record, whatever it is, is none for the scripts and for the client alike, and stops
// nobody. What is one for the scripts is one for the client.
func TestOddRecordsStopNobody(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	long := strings.Repeat("9", 17)
	for i, text := range []string{
		"", "1", "2", "x", "0 5 1 0 4 0 1 4 1     x", "02  5 1 0 4 0 1 4 1     x", "1000  5 1 0 4 0 1 4 1     x", "1  5 1 0 4 0 1 4 1  x", "1  -5 1 0 4 0 1 4 1     x", "1  5 1 0 4.0 0 1 4 1     x",
		"1  " + long + " 1 0 4 0 1 4 1     x", "1  5 1 0 4 0 1 4 " + long + "     x", "1  5 1 0 4 0 1 4 1 \t    x", "1 \n 5 1 0 4 0 1 4 1     x", "1\x00 5 1 0 4 0 1 4 1     x",
		"1  5 1 0 4 0 1 4 1 %zz %ff   x", "1  5 1 0 4 0 1 4 1     \x00\n\xff", "1  05 01 00 4 0 1 4 1 a b   x", "1  5 1 0 4 0 1 4 1 \x00 \xff   x",
		"1 " + strings.Repeat("p", 5000) + " 5 1 0 4 0 1 4 1     x", "1  5 1 0 4 0 1 4 1 " + strings.Repeat("l", 5000) + "    " + strings.Repeat("o", 5000),
		"1  9007199254740992 1 0 4 0 1 4 1     x", "1  5 9999999999999999 0 4 0 1 4 1     x", "1  5 1 0 9007199254740993 0 1 4 1     x",
		"1   5 1 0 4 0 1 4 1     x", "1  5 1 0 4 0 1 4 1    u x", "1  5 1 0 4 0 1 4 1    tt x", "1  5 1 0 4 0 1 4 1    t x", " 1  5 1 0 4 0 1 4 1     x", "list",
	} {
		k := &Keys{Lock: "{" + strconv.Itoa(i) + "}"}
		if text == "list" {
			require.NoError(t, n.Do(t, "RPUSH", k.Record(), text).Error())
		} else {
			require.NoError(t, n.Do(t, "SET", k.Record(), text).Error())
		}
		do := func(c Call, g *Set) Answer {
			c.Keys, c.Lock = k, "1 me/BBBBBBBBBBBBBBBBBBBBBB"
			rep := ask(t, n.Client(), g, &c)[0]
			require.NoError(t, rep.Err, "%q", text)
			return rep.Answer
		}
		recalled := do(Call{Op: Recall}, AnyProcess)
		require.Equal(t, ParseRecord(text) == nil || text == "list", recalled.More().Record == nil, "%q", text)
		once := Once{Number: 7, Keep: "3600000"}.Words()
		k.Fences, k.Slot = k.Lock+":fence", "7"
		rep := do(Call{Op: Acquire, Sequence: once, TTL: "60000", Hint: "1", Skew: "2000000"}, AnyProcess)
		require.Equal(t, OK, rep.Verdict, "%q", text)
		require.Equal(t, int64(7), rep.More().Record.Granted, "%q", text)
		if recalled.More().Record != nil {
			require.Equal(t, recalled.More().Record.Granted, rep.More().Record.Before, "%q", text)
			require.Equal(t, recalled.More().Record.Label, rep.More().Record.LabelBefore, "%q", text)
		}
		rep = do(Call{Op: Release, Sequence: once, Keep: "0", Record: Done}, nil)
		require.Equal(t, Answer{Verdict: OK}, rep, "%q", text)
		recalled = do(Call{Op: Recall}, AnyProcess)
		require.Equal(t, int64(7), recalled.More().Record.Completed)
	}
}

// No server raises its counter to a token that is damaged, or beyond one of its own that is.
func TestAgreementIsNotLed(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	micros := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).UnixMicro(), 10) }
	for i, test := range []struct{ has, fence, token, want string }{
		{"5", "5", "6", "1"}, {"6", "6", "6", "0"}, {"7", "7", "6", "0"}, {"5", "5", micros(49 * time.Hour), "1"},
		{"5", "6", "6", "1"}, {"5", "9", "6", "1"}, {"6", "5", "6", "0"}, // the counter was raised for another key, or lost
		{"5", "5", "9007199254740992", "TENUREDAMAGED"}, {"5", "5", "18446744073709551615", "TENUREDAMAGED"},
		{"5", "x", "6", "TENUREDAMAGED"}, {"5", "9007199254740992", "6", "TENUREDAMAGED"}, {"9007199254740992", "5", "6", "0"},
	} {
		k := &Keys{Lock: fmt.Sprintf("{%d}", i), Fences: fmt.Sprintf("{%d}:fence", i), Slot: "7"}
		require.NoError(t, n.Do(t, "SET", k.Lock, Lock(test.has, someOwner), "PX", "60000").Error())
		require.NoError(t, n.Do(t, "HSET", k.Fences, k.Slot, test.fence).Error())
		token, err := strconv.ParseUint(test.token, 10, 64)
		require.NoError(t, err)
		agree := &Call{Op: Agree, Keys: k, Lock: Lock(test.token, someOwner), Token: token}
		agreed := ask(t, n.Client(), AnyProcess, agree)[0]
		text := map[Verdict]string{OK: "1", Refused: "0"}[agreed.Verdict]
		if agreed.Err != nil {
			text = agreed.Err.Error()
		}
		require.Contains(t, text, test.want, "%+v", test)
		lock, err := n.Do(t, "GET", k.Lock).ToString()
		require.NoError(t, err)
		fence, err := n.Do(t, "HGET", k.Fences, k.Slot).ToString()
		require.NoError(t, err)
		if test.want == "1" {
			test.has = test.token
			if len(test.fence) < len(test.token) || test.fence < test.token {
				test.fence = test.token
			}
		}
		require.Equal(t, test.fence, fence, "%+v", test)
		require.Equal(t, Lock(test.has, someOwner), lock, "%+v", test)
		left, err := n.Do(t, "PTTL", k.Lock).AsInt64()
		require.NoError(t, err)
		require.Positive(t, left, "agreement does not prolong it")
		require.LessOrEqual(t, left, int64(60_000))
	}
}

// A number that is granted again and again stays a number in its record, however often it was: else
// the record would be none, and the number forgotten.
func TestAttemptsStayANumber(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	for before, after := range map[string]int{"1": 2, "99999999999999": 100000000000000, "9007199254740991": MaxSequence} {
		k := &Keys{Lock: "{" + before + "}", Fences: "{" + before + "}:fence", Slot: "7"}
		require.NoError(t, n.Do(t, "SET", k.Record(), "1  7 "+before+" 0 0 0 0 0 0     x").Error())
		rep := ask(t, n.Client(), AnyProcess, &Call{Op: Acquire, Keys: k, Lock: someLock, TTL: "60000", Hint: "1", Skew: "2000000",
			Sequence: Once{Number: 7, Keep: "3600000", Repeated: true}.Words()})[0]
		require.NoError(t, rep.Err, before)
		require.Equal(t, after, rep.More().Record.Attempts, before)
	}
}

// The numbers of a record of ticks that leads the server's clock by more than a day are none, to
// each script; its mark stays. One that leads by less counts, because people set clocks back; and
// numbers that are no ticks lead no clock.
func TestTicksOfTheFutureAreNone(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	now := time.Now()
	soon, far := now.Add(23*time.Hour).UnixMilli(), now.Add(25*time.Hour).UnixMilli()
	const mark = "50/1/1/Ann/"
	record := func(kind string, granted, completed, before int64) string {
		return fmt.Sprintf("1 %s %d 1 7 %d 10 20 %d 1 a b %s %s x", thisProcess, granted, completed, before, mark, kind)
	}
	for name, test := range map[string]struct {
		has  string
		none bool
	}{
		"granted":        {record("t", far, 4, 4), true},
		"completed":      {record("t", 5, far, 4), true},
		"granted before": {record("t", 5, 4, far), true},
		"largest":        {record("t", MaxSequence, MaxSequence, MaxSequence), true},
		"within a day":   {record("t", soon, soon, soon), false},
		"numbers":        {record("", far, far, far), false},
	} {
		ask := func(c Call) Answer {
			t.Helper()
			c.Keys = &Keys{Lock: "{" + name + "}", Fences: "{" + name + "}:fence", Slot: "7"}
			c.Lock, c.TTL, c.Hint, c.Skew, c.Keep = "1 me/BBBBBBBBBBBBBBBBBBBBBB", "60000", "1", "2000000", "0"
			c.Sequence = Once{Number: now.UnixMilli(), Keep: "3600000", IsTime: true}.Words()
			require.NoError(t, n.Do(t, "SET", c.Keys.Record(), test.has).Error())
			rep := ask(t, n.Client(), NewSet(thisProcess), &c)[0]
			require.NoError(t, rep.Err, name)
			return rep.Answer
		}
		stored := func() *Record {
			text, err := n.Do(t, "GET", "{"+name+"}:once").ToString()
			require.NoError(t, err)
			r := ParseRecord(text)
			require.Equal(t, parseMark(mark), r.Mark, name)
			return r
		}
		acquired := ask(Call{Op: Acquire})
		require.Equal(t, test.none, acquired.Verdict == Failed && acquired.More().UnknownKey && acquired.More().Record == nil, name)
		require.Equal(t, !test.none, acquired.Verdict == Refused && acquired.More().Record != nil, name)
		recalled := ask(Call{Op: Recall})
		require.Equal(t, test.none, recalled.Verdict == Refused && recalled.More().Record == nil, name)
		require.Equal(t, test.none, ask(Call{Op: Pause, Write: &Write{Mark: Mark{Version: 1, Floor: 1}, Lifetime: "1000"}}).Verdict == Failed, name)
		ask(Call{Op: Release, Record: Done})
		require.Equal(t, test.none, stored().Completed == now.UnixMilli(), name)
		require.Equal(t, test.none, stored().Ticks && stored().Granted == now.UnixMilli(), name)
		require.NoError(t, n.Do(t, "DEL", "{"+name+"}").Error())
		ask(Call{Op: Extend, Spread: "1", Token: 1})
		require.Equal(t, test.none, stored().Ticks && stored().Granted == now.UnixMilli(), name)
		given := Record{Granted: 5, Attempts: 1, Ticks: true}
		restored := ask(Call{Op: Restore, Write: &Write{Process: thisProcess, Known: given.Text(), Lifetime: "3600000"}})
		if test.none {
			require.Equal(t, Answer{Verdict: OK, Wrote: true, Replaced: true}, restored, name)
			require.Equal(t, int64(5), stored().Granted, name)
			require.True(t, stored().Ticks, name)
		} else {
			require.Equal(t, Answer{Verdict: OK}, restored, "it knows")
		}
	}
}

// A server does not know by a restore what counts as none by its clock.
func TestTicksOfTheFutureAreNotRestored(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	k := &Keys{Lock: "{key}"}
	r := Record{Granted: time.Now().Add(25 * time.Hour).UnixMilli(), Attempts: 1, Ticks: true}
	for _, ticks := range []bool{true, false} {
		r.Ticks = ticks
		rep := ask(t, n.Client(), NewSet(thisProcess), &Call{Op: Restore, Keys: k, Write: &Write{Process: thisProcess, Known: r.Text(), Lifetime: "3600000"}})[0]
		there, err := n.Do(t, "EXISTS", k.Record()).AsBool()
		require.NoError(t, err)
		require.Equal(t, !ticks, there)
		if ticks {
			require.ErrorContains(t, rep.Err, "TENUREAHEAD")
		}
	}
}
