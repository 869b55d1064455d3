package wire

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
	theirMark   = "50/2000/1700000000000/Ann/a+%2F+b"
	hour        = 3_600_000
	lateOnTests = 600_000 // what a loaded machine may take off a lifetime
)

func pauseOf(k *Keys, version uint64, lifetime string) *Call {
	return &Call{Op: Pause, Keys: k, Write: &Write{Mark: Mark{Version: version, Floor: 3000, At: 2500, By: "Bob", Why: "x / y"}, Lifetime: lifetime}}
}

// has puts a text where a record is to be; an empty one is none, and "list" a list.
func has(t *testing.T, n *valkeytest.Node, k *Keys, text string) {
	t.Helper()
	switch text {
	case "":
	case "list":
		require.NoError(t, n.Do(t, "RPUSH", k.Record(), text).Error())
	default:
		require.NoError(t, n.Do(t, "SET", k.Record(), text, "PX", strconv.Itoa(hour)).Error())
	}
}

func recorded(t *testing.T, n *valkeytest.Node, k *Keys) (text string, left int64) {
	t.Helper()
	text, err := n.Do(t, "GET", k.Record()).ToString()
	if !valkey.IsValkeyNil(err) {
		require.NoError(t, err)
	}
	left, err = n.Do(t, "PTTL", k.Record()).AsInt64()
	require.NoError(t, err)
	return text, left
}

// A mark is taken by a process that knows the sequence and has no later one. Nothing else in the
// record changes.
func TestPauseIsTakenByThoseThatKnow(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	const numbers, owner = " 5 1 7 4 10 20 4 1 a b ", "  " + someOwner
	known, old := "1 "+thisProcess+numbers, "1 "+otherProcess+numbers
	for name, test := range map[string]struct {
		has     string
		version uint64
		answer  string // wrote, had, newer, unknown or version
	}{
		"none":               {known + owner, 50, "wrote"},
		"earlier":            {known + "49/9000/1/Ann/" + owner, 50, "wrote"},
		"the same":           {known + "50/3000/2500/Bob/x+%2F+y" + owner, 50, "had"},
		"one of its version": {known + theirMark + owner, 50, "newer"},
		"later":              {known + theirMark + owner, 49, "newer"},
		"damaged":            {known + "51/x/1/Ann/" + owner, 50, "wrote"},
		"no number":          {known + "x/9000/1/Ann/" + owner, 50, "wrote"},
		"too few fields":     {known + "51/9000/1/Ann" + owner, 50, "wrote"},
		"too many":           {known + "51/9000/1/Ann//" + owner, 50, "wrote"},
		"above the exact":    {known + "9007199254740992/9000/1/Ann/" + owner, 50, "wrote"},
		"floor above that":   {known + "51/9007199254740992/1/Ann/" + owner, 50, "wrote"},
		"time above that":    {known + "51/9000/9007199254740992/Ann/" + owner, 50, "wrote"},
		"long numbers":       {known + "00000000000000051/9000/1/Ann/" + owner, 50, "wrote"},
		"of the future":      {known + "9007199254740991/9000/1/Ann/" + owner, 50, "wrote"},
		"another process":    {old + theirMark + owner, 60, "unknown"},
		"no record":          {"", 50, "unknown"},
		"a text that is no":  {"x", 50, "unknown"},
		"a list":             {"list", 50, "unknown"},
		"another version":    {"2 " + thisProcess + numbers + theirMark + owner, 60, "version"},
	} {
		k := &Keys{Lock: "{" + name + "}"}
		has(t, n, k, test.has)
		got := ask(t, n.Client(), NewSet(thisProcess), pauseOf(k, test.version, "7200000"))[0]
		text, left := "", int64(hour)
		if test.has != "list" {
			text, left = recorded(t, n, k)
		}
		if test.answer == "version" {
			require.EqualError(t, got.Err, "TENUREVERSION the record has version 2, and this library knows 1")
		} else {
			require.NoError(t, got.Err, name)
		}
		var want Answer
		switch test.answer {
		case "wrote", "had":
			want = Answer{Verdict: OK}
		case "newer":
			want = Answer{Verdict: Refused}.With(More{Record: ParseRecord(test.has)})
		case "unknown":
			want = Answer{Verdict: Failed}.With(More{Unknown: thisProcess, UnknownKey: true, Record: ParseRecord(test.has), PTTL: MaxKeep})
		}
		require.Equal(t, want, got.Answer, name)
		if test.answer != "wrote" {
			if test.has != "list" {
				require.Equal(t, test.has, text, name)
			}
			if test.has != "" {
				require.InDelta(t, hour, left, lateOnTests, name)
			}
			continue
		}
		require.InDelta(t, 2*hour, left, lateOnTests, name)
		require.True(t, strings.HasPrefix(text, known), text)
		require.True(t, strings.HasSuffix(text, owner), text)
		m := ParseRecord(text).Mark
		require.Equal(t, Mark{Version: 50, Floor: 3000, At: 2500, By: "Bob", Why: "x / y"}, m, name)
	}
}

// Without a gate whatever a process has is what it knows.
func TestPauseWithoutAGate(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	for i, text := range []string{"", "x", "list", "1 " + otherProcess + " 5 1 0 4 0 1 4 1     x"} {
		k := &Keys{Lock: "{" + strconv.Itoa(i) + "}"}
		has(t, n, k, text)
		require.Equal(t, Answer{Verdict: OK}, ask(t, n.Client(), AnyProcess, pauseOf(k, 7, "3600000"))[0].Answer)
		text, _ := recorded(t, n, k)
		require.Equal(t, uint64(7), ParseRecord(text).Mark.Version)
	}
}

// A server that is full says so, and changes nothing.
func TestPauseOnAFullServer(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	k := &Keys{Lock: "{key}"}
	before := "1 " + thisProcess + " 5 1 7 4 10 20 4 1 a b   " + someOwner
	has(t, n, k, before)
	pause := pauseOf(k, 50, "7200000")
	do(t, n.Client(), NewSet(thisProcess), pauseOf(&Keys{Lock: "{other}"}, 1, "1"))
	require.NoError(t, n.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	_, err := decode(n.Client().Do(t.Context(), new(Buffers).Encode(n.Client(), []*Call{pause}, NewSet(thisProcess), "0")), pause)
	require.NoError(t, n.Do(t, "CONFIG", "SET", "maxmemory", "0").Error())
	require.ErrorContains(t, err, "OOM")
	text, _ := recorded(t, n, k)
	require.Equal(t, before, text)
}

func decode(result valkey.ValkeyResult, c *Call) (Answer, error) {
	r := Decode([]*Call{c}, result, "0", nil)[0]
	return r.Answer, r.Err
}

// A record is kept for as long as a mark in it needs, whatever happens to leases of the key
// meanwhile; and no shorter than one of these needs.
func TestMarkedRecordIsKept(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	g := NewSet(thisProcess)
	for name, test := range map[string]struct {
		lifetime string // of the mark
		keep     string // of the leases
		want     int64
	}{
		"the mark longer":   {"7200000", "3600000", 2 * hour},
		"for a century":     {strconv.FormatInt(MaxKeep.Milliseconds(), 10), "3600000", MaxKeep.Milliseconds()},
		"the leases longer": {"3600000", "7200000", 2 * hour},
	} {
		k := &Keys{Lock: "{" + name + "}", Fences: "{" + name + "}:fence", Slot: "7"}
		has(t, n, k, "1 "+thisProcess+" 5 1 7 4 10 20 4 1     x")
		require.NoError(t, ask(t, n.Client(), g, pauseOf(k, 50, test.lifetime))[0].Err)
		once := Once{Number: 7, Keep: test.keep, Repeated: true, Due: 9000}.Words()
		requireKept := func(what string, c Call) {
			t.Helper()
			c.Keys, c.Lock, c.Sequence = k, someLock, once
			require.Equal(t, OK, ask(t, n.Client(), g, &c)[0].Verdict, name+" "+what)
			text, left := recorded(t, n, k)
			require.Equal(t, uint64(50), ParseRecord(text).Mark.Version, name+" "+what)
			require.InDelta(t, test.want, left, lateOnTests, name+" "+what)
		}
		requireKept("granted", Call{Op: Acquire, TTL: "60000", Hint: "1", Skew: "2000000"})
		once[0] = "8"
		requireKept("extended", Call{Op: Extend, TTL: "60000", Token: 5, Spread: "1"})
		requireKept("taken back", Call{Op: Release, Keep: "60000", Record: Undo})
		requireKept("completed", Call{Op: Release, Keep: "0", Record: Done})
	}

	// What something else did to the expiry of a record with a mark costs no write, and none lives
	// longer than a century.
	for name, odd := range map[string][]string{"none": {"PERSIST"}, "far": {"PEXPIREAT", "9223372036854775807"}} {
		k := &Keys{Lock: "{" + name + "}", Fences: "{" + name + "}:fence", Slot: "7"}
		once := Once{Number: 7, Keep: "3600000", Repeated: true, Due: 9000}.Words()
		for what, c := range map[string]*Call{
			"granted":   {Op: Acquire, TTL: "60000", Hint: "1", Skew: "2000000"},
			"completed": {Op: Release, Keep: "0", Record: Done},
			"paused":    {Op: Pause, Write: &Write{Mark: Mark{Version: 51, Floor: 3000}, Lifetime: "3600000"}},
			"restored":  {Op: Restore, Write: &Write{Process: thisProcess, Known: new(Record).Text(), Lifetime: "3600000"}},
		} {
			process := thisProcess
			if what == "restored" {
				process = otherProcess
			}
			require.NoError(t, n.Do(t, "SET", k.Record(), "1 "+process+" 5 1 7 4 10 20 4 1   "+theirMark+"  x").Error())
			require.NoError(t, n.Do(t, append([]string{odd[0], k.Record()}, odd[1:]...)...).Error())
			require.NoError(t, n.Do(t, "DEL", k.Lock).Error())
			c.Keys, c.Lock, c.Sequence = k, someLock, once
			got := ask(t, n.Client(), g, c)[0]
			require.NoError(t, got.Err, name+" "+what)
			require.NotEqual(t, Failed, got.Verdict, name+" "+what)
			_, left := recorded(t, n, k)
			want := MaxKeep.Milliseconds()
			if what == "paused" || what == "restored" && name == "none" { // they say how long
				want = hour
			}
			require.InDelta(t, want, left, lateOnTests, name+" "+what)
		}
	}

	k := &Keys{Lock: "{numbers}"}
	require.NoError(t, n.Do(t, "SET", k.Record(), "1 "+thisProcess+" 5 1 7 4 10 20 4 1     x", "PX", "10800000").Error())
	require.NoError(t, ask(t, n.Client(), g, pauseOf(k, 50, "3600000"))[0].Err)
	_, left := recorded(t, n, k)
	require.InDelta(t, 3*hour, left, lateOnTests, "a mark does not shorten what the numbers need")
	require.NoError(t, ask(t, n.Client(), g, pauseOf(k, 51, "3600000"))[0].Err)
	_, left = recorded(t, n, k)
	require.InDelta(t, hour, left, lateOnTests, "what was kept for an earlier mark is not")
}

// A tick is granted by a process that knows its record and that of all, if it was due at the floor
// of each or later. What its number is does not matter.
func TestTickIsGrantedAboveBothFloors(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	text := func(process, mark string) string { return "1 " + process + " 5 1 7 4 10 20 4 1 a b " + mark + "  x" }
	floor := func(at string) string { return "50/" + at + "/1/Ann/why" }
	known := text(thisProcess, "")
	for name, test := range map[string]struct {
		own, all    string
		number, due int64
		want        string // "own" or "all": refused because of that; "unknown own", ...; "" granted
	}{
		"no pause":                     {known, known, 7, 1999, ""},
		"paused":                       {text(thisProcess, floor("2000")), known, 7, 1999, "own"},
		"at the floor":                 {text(thisProcess, floor("2000")), known, 7, 2000, ""},
		"number below the floor":       {text(thisProcess, floor("2000")), known, 1999, 2000, ""},
		"number above the floor":       {text(thisProcess, floor("2000")), known, 2001, 1999, "own"},
		"for ever":                     {text(thisProcess, floor("9007199254740991")), known, 7, 9007199254740990, "own"},
		"all":                          {known, text(thisProcess, floor("2000")), 7, 1999, "all"},
		"all, at the floor":            {known, text(thisProcess, floor("2000")), 7, 2000, ""},
		"all, number below":            {known, text(thisProcess, floor("2000")), 1999, 2000, ""},
		"all, number above":            {known, text(thisProcess, floor("2000")), 2001, 1999, "all"},
		"both":                         {text(thisProcess, floor("2000")), text(thisProcess, floor("2000")), 7, 1999, "own"},
		"both, above the own":          {text(thisProcess, floor("2000")), text(thisProcess, floor("3000")), 7, 2000, "all"},
		"number done":                  {text(thisProcess, floor("2000")), text(thisProcess, floor("2000")), 4, 1999, "own"},
		"unknown own":                  {text(otherProcess, ""), known, 7, 1999, "unknown own"},
		"unknown all":                  {known, text(otherProcess, ""), 7, 1999, "unknown all"},
		"unknown both":                 {text(otherProcess, ""), text(otherProcess, ""), 7, 1999, "unknown both"},
		"absent own":                   {"", known, 7, 1999, "unknown own"},
		"absent all":                   {known, "", 7, 1999, "unknown all"},
		"absent both":                  {"", "", 7, 1999, "unknown both"},
		"unknown before paused":        {text(otherProcess, ""), text(thisProcess, floor("2000")), 7, 1999, "unknown own"},
		"unknown all before paused":    {text(thisProcess, floor("2000")), text(otherProcess, ""), 7, 1999, "unknown all"},
		"no text":                      {known, "list", 7, 1999, "unknown all"},
		"floor that is no number":      {text(thisProcess, floor("x")), text(thisProcess, floor("-1")), 7, 1999, ""},
		"floor with a fraction":        {text(thisProcess, floor("2000.5")), text(thisProcess, floor("2e9")), 7, 1999, ""},
		"floor above the exact":        {text(thisProcess, floor("9007199254740992")), text(thisProcess, floor("99999999999999999")), 7, 1999, ""},
		"version above the exact":      {text(thisProcess, "9007199254740992/2000/1/Ann/"), text(thisProcess, "9999999999999999/2000/1/Ann/"), 7, 1999, ""},
		"time above the exact":         {text(thisProcess, "50/2000/9007199254740992/Ann/"), text(thisProcess, "50/2000/99999999999999999/Ann/"), 7, 1999, ""},
		"version 0":                    {text(thisProcess, "0/2000/1/Ann/"), text(thisProcess, "0/2000/1/Ann/"), 7, 1999, ""},
		"fields that are missing":      {text(thisProcess, "50/2000/1/Ann"), text(thisProcess, "50/2000"), 7, 1999, ""},
		"fields too many":              {text(thisProcess, "50/2000/1/Ann/why/"), text(thisProcess, "/"), 7, 1999, ""},
		"texts that are damaged":       {text(thisProcess, "50/2000/1/%zz/\xff"), known, 7, 1999, "own"},
		"texts that are long":          {text(thisProcess, "50/2000/1/"+strings.Repeat("x", 5000)+"/"), known, 7, 1999, "own"},
		"texts that are long, and all": {known, text(thisProcess, "50/2000/1//"+strings.Repeat("x", 5000)), 7, 1999, "all"},
		"another version":              {known, "2 " + thisProcess + " x", 7, 1999, "version"},
	} {
		k := &Keys{Lock: "{" + name + "}", Fences: "{" + name + "}:fence", Slot: "7"}
		all := &Keys{Lock: "{" + name + "}:all"}
		has(t, n, k, test.own)
		has(t, n, all, test.all)
		got := ask(t, n.Client(), NewSet(thisProcess), &Call{Op: Acquire, Keys: k, All: all, Lock: someLock, TTL: "60000", Hint: "1", Skew: "2000000",
			Sequence: Once{Number: test.number, Keep: "3600000", Repeated: true, Due: test.due}.Words()})[0]
		if test.want == "version" {
			require.EqualError(t, got.Err, "TENUREVERSION the record has version 2, and this library knows 1")
		} else {
			require.NoError(t, got.Err, name)
		}
		locked, err := n.Do(t, "EXISTS", k.Lock).AsBool()
		require.NoError(t, err)
		require.Equal(t, test.want == "", locked, name)
		if test.want != "" && test.own != "list" {
			text, _ := recorded(t, n, k)
			require.Equal(t, test.own, text, name)
		}
		own, ofAll := ParseRecord(test.own), ParseRecord(test.all)
		switch test.want {
		case "":
			require.Equal(t, OK, got.Verdict, name)
			require.Equal(t, test.number, got.More().Record.Granted, name)
			require.Equal(t, own.Mark, got.More().Record.Mark, name)
		case "own", "all":
			require.Equal(t, Refused, got.Verdict, name)
			require.Equal(t, own, got.More().Record, name)
			require.NotZero(t, got.Server, name)
			if test.want == "own" {
				ofAll = nil
			}
			require.Equal(t, ofAll, got.More().All, name)
		case "unknown own", "unknown all", "unknown both":
			require.Equal(t, Failed, got.Verdict, name)
			require.Equal(t, thisProcess, got.More().Unknown, name)
			require.Equal(t, test.want != "unknown all", got.More().UnknownKey, name)
			require.Equal(t, test.want != "unknown own", got.More().UnknownAll, name)
			if !got.More().UnknownKey {
				own = nil
			}
			if !got.More().UnknownAll {
				ofAll = nil
			}
			require.Equal(t, own, got.More().Record, name)
			require.Equal(t, ofAll, got.More().All, name)
		}
	}
}

// What is no tick is granted whatever is paused, also by a process that does not know of all.
func TestWhatIsNoTickIsNotPaused(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	k := &Keys{Lock: "{key}", Fences: "{key}:fence", Slot: "7"}
	has(t, n, k, "1 "+thisProcess+" 5 1 7 4 10 20 4 1 a b 50/9007199254740991/1/Ann/  x")
	got := ask(t, n.Client(), NewSet(thisProcess), &Call{Op: Acquire, Keys: k, Lock: someLock, TTL: "60000", Hint: "1", Skew: "2000000",
		Sequence: Once{Number: 7, Keep: "3600000", Repeated: true}.Words()})[0]
	require.NoError(t, got.Err)
	require.Equal(t, OK, got.Verdict)
	require.Equal(t, uint64(50), got.More().Record.Mark.Version)
}

// What is restored has the later of two marks, and keeps it for as long as the longer of both.
func TestRestoreKeepsTheLaterMark(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	text := func(process, mark string) string { return "1 " + process + " 5 1 0 4 10 20 4 1 a b " + mark + "  x" }
	const earlier, later = "50/2000/1/Ann/", "51/1000/1/Bob/"
	for name, test := range map[string]struct{ has, given, want string }{
		"none":            {"", "", ""},
		"nothing there":   {"absent", later, later},
		"given":           {"", later, later},
		"its own":         {earlier, "", earlier},
		"given is later":  {earlier, later, later},
		"own is later":    {later, earlier, later},
		"own is damaged":  {"52/x/1/Cid/", earlier, earlier},
		"own is absurd":   {"9007199254740992/3000/1/Cid/", earlier, earlier},
		"given is absurd": {earlier, "9007199254740992/3000/1/Cid/", earlier},
	} {
		k := &Keys{Lock: "{" + name + "}"}
		if test.has != "absent" {
			has(t, n, k, text(otherProcess, test.has))
		}
		got := ask(t, n.Client(), NewSet(thisProcess), &Call{Op: Restore, Keys: k, Write: &Write{Process: thisProcess, Known: text("", test.given), Lifetime: "7200000"}})[0]
		require.NoError(t, got.Err, name)
		require.Equal(t, Answer{Verdict: OK, Wrote: true}, got.Answer, name)
		is, left := recorded(t, n, k)
		require.Equal(t, text(thisProcess, test.want), is, name)
		require.InDelta(t, 2*hour, left, lateOnTests, name)
	}
}

// Of two records a merge has the later mark, whichever has the larger numbers.
func TestMergedMarks(t *testing.T) {
	marks := []Mark{{}, {Version: 50, Floor: 2000, By: "Ann"}, {Version: 51, Floor: 1000, By: "Bob"}}
	for _, one := range marks {
		for _, other := range marks {
			for _, numbers := range [][2]int64{{5, 5}, {5, 6}, {6, 5}} {
				r := &Record{Granted: numbers[0], Mark: one}
				r.Merge(&Record{Granted: numbers[1], Mark: other})
				want := one
				if other.Version > one.Version {
					want = other
				}
				require.Equal(t, &Record{Granted: max(numbers[0], numbers[1]), Mark: want}, r)
			}
		}
	}
}

// A server takes no mark of a version that nobody can have been given.
func TestPauseOfTheFutureIsRefused(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	k := &Keys{Lock: "{key}"}
	has(t, n, k, "1 "+thisProcess+" 5 1 7 4 10 20 4 1 a b   x")
	at := func(ahead time.Duration) error {
		version := uint64(time.Now().Add(ahead).UnixMicro())
		return ask(t, n.Client(), NewSet(thisProcess), pauseOf(k, version, "7200000"))[0].Err
	}
	require.NoError(t, at(23*time.Hour))
	require.ErrorContains(t, at(25*time.Hour), "TENUREAHEAD")
	text, _ := recorded(t, n, k)
	require.Contains(t, text, "/Bob/")
}
