package redlock

import (
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
	nobodys      = "host one/----------------------"
)

// What a server process learns: it is the one that was meant, it does not know already, and it
// keeps what it has beyond.
func TestRestoreIsForOneProcessThatDoesNotKnow(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	const given = "1  5 1 0 4 10 20 4 1 a b " + someOwner
	for name, test := range map[string]struct {
		process   string
		has, want string // without the version
		answer    int64
	}{
		"nothing":                  {thisProcess, "", thisProcess + " 5 1 0 4 10 20 4 1 a b " + nobodys, 1},
		"another process is meant": {otherProcess, "", "", 0},
		"it knows":                 {thisProcess, thisProcess + " 3 1 7 3 1 2 0 0   x", thisProcess + " 3 1 7 3 1 2 0 0   x", 2},
		"old and less":             {thisProcess, otherProcess + " 3 1 7 3 1 2 0 0   x", thisProcess + " 5 1 0 4 10 20 4 1 a b " + nobodys, 1},
		"a later grant": {thisProcess, otherProcess + " 6 2 7 3 1 2 3 1 c d " + someOwner,
			thisProcess + " 6 2 7 4 10 20 3 1 c d " + nobodys, 1},
		"another attempt":             {thisProcess, " 5 2 7 3 1 2 3 1 c d x", thisProcess + " 5 2 7 4 10 20 3 1 c d x", 1},
		"a later completion":          {thisProcess, " 4 1 7 5 0 22 3 1 c d x", thisProcess + " 5 1 0 5 0 22 4 1 a b " + nobodys, 1},
		"the completion, with a pair": {thisProcess, " 4 1 7 4 11 22 3 1 c d x", thisProcess + " 5 1 0 4 11 22 4 1 a b " + nobodys, 1},
		"the completion, without":     {thisProcess, " 4 1 7 4 0 22 3 1 c d x", thisProcess + " 5 1 0 4 10 20 4 1 a b " + nobodys, 1},
		"no record":                   {thisProcess, "x", thisProcess + " 5 1 0 4 10 20 4 1 a b " + nobodys, 1},
	} {
		k := &keyset{lock: "{" + name + "}"}
		if test.has != "" {
			require.NoError(t, n.Do(t, "SET", k.record(), "1 "+test.has, "PX", "7200000").Error())
		}
		r := &request{op: OpRestore, attempt: &attempt{keys: k}, args: &arguments{process: test.process, record: given, lifetime: "3600000"}}
		g := gatedBy(thisProcess, "")
		g.teachable = true
		command, _ := r.command(n.Client(), g, true, nil)
		answer, err := n.Client().Do(t.Context(), command).AsInt64()
		require.NoError(t, err, name)
		require.Equal(t, test.answer, answer, name)
		text, err := n.Do(t, "GET", k.record()).ToString()
		if test.want == "" {
			require.True(t, valkey.IsValkeyNil(err), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, "1 "+test.want, text, name)
		left, err := n.Do(t, "PTTL", k.record()).AsInt64()
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
		"", "1", "x", "2  5 1 0 4 0 1 4 1   x", "5 1 0 4 0 1 4 1 x", "1  5 1 0 4 0 1 4 1  x", "1  -5 1 0 4 0 1 4 1   x", "1  5 1 0 4.0 0 1 4 1   x",
		"1  " + long + " 1 0 4 0 1 4 1   x", "1  5 1 0 4 0 1 4 " + long + "   x", "1  5 1 0 4 0 1 4 1 \t  x", "1 \n 5 1 0 4 0 1 4 1   x", "1\x00 5 1 0 4 0 1 4 1   x",
		"1  5 1 0 4 0 1 4 1 %zz %ff x", "1  5 1 0 4 0 1 4 1   \x00\n\xff", "1  05 01 00 4 0 1 4 1 a b x", "1  5 1 0 4 0 1 4 1 \x00 \xff x",
		"1 " + strings.Repeat("p", 5000) + " 5 1 0 4 0 1 4 1   x", "1  5 1 0 4 0 1 4 1 " + strings.Repeat("l", 5000) + "  " + strings.Repeat("o", 5000),
		"1   5 1 0 4 0 1 4 1   x", " 1  5 1 0 4 0 1 4 1   x", "list",
	} {
		k := &keyset{lock: "{" + strconv.Itoa(i) + "}"}
		if text == "list" {
			require.NoError(t, n.Do(t, "RPUSH", k.record(), text).Error())
		} else {
			require.NoError(t, n.Do(t, "SET", k.record(), text).Error())
		}
		do := func(r *request, g *gated) reply {
			r.attempt.keys = k
			command, _ := r.command(n.Client(), g, true, nil)
			rep, err := r.parse(n.Client().Do(t.Context(), command))
			require.NoError(t, err, "%q", text)
			return rep
		}
		recalled := do(&request{op: OpRecall, attempt: &attempt{}}, anyProcess)
		require.Equal(t, parseRecord(text) == nil || text == "list", recalled.record == nil, "%q", text)
		once := &once{n: 7, delivery: AtMostOnce, keep: time.Hour}
		at := &attempt{owner: "me/BBBBBBBBBBBBBBBBBBBBBB", cfg: leaseConfig{once: once, ttl: time.Minute}}
		k.fence, k.wait = k.lock+":fence", k.lock+":wait"
		rep := do(&request{op: OpAcquire, attempt: at, args: &arguments{ttl: "60000", hint: "1", skew: "2000000"}}, anyProcess)
		require.Equal(t, agreed, rep.verdict, "%q", text)
		require.Equal(t, int64(7), rep.record.granted, "%q", text)
		if recalled.record != nil {
			require.Equal(t, recalled.record.granted, rep.record.before, "%q", text)
			require.Equal(t, recalled.record.label, rep.record.labelBefore, "%q", text)
		}
		rep = do(&request{op: OpRelease, attempt: at, args: &arguments{keep: "0", record: recordDone}}, nil)
		require.Equal(t, reply{verdict: agreed}, rep, "%q", text)
		require.Equal(t, int64(7), do(&request{op: OpRecall, attempt: &attempt{}}, anyProcess).record.completed)
	}
}
