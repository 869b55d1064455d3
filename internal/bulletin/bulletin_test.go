package bulletin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/redlock"
)

// A value of each kind with all its fields.
var (
	fullJob = Job{
		V: 1, Job: "report", Key: "job/report", Schedule: "0 * * * *", Zone: "Europe/Berlin", Program: "billing", Election: "jobs",
		Delivery: "at most once", CatchUp: "last", Overlap: "skip", Next: 1780000000000, Within: 1000, Window: 2000, Runbook: "https://x/y", By: "host-1", Orders: true,
	}
	fullRun = Run{
		V: 1, Job: "report", Tick: 1780000000000, By: "host-1", Began: 1780000000123, Took: 4567, Outcome: Failed, Error: "timeout",
		Attempt: 2, Why: "late", Token: 18446744073709551615, Trace: "0af7651916cd43dd8448eb211c80319c", Order: "ID",
		Attempts: []Attempt{{1780000000123, 12, "canceled"}, {Began: 1780000001123, Took: 13}},
	}
	fullSkip  = Skip{V: 1, Job: "report", Tick: 1780000000000, Reason: "paused", By: "host-1", Holder: "ann"}
	fullTerm  = Term{V: 1, Election: "jobs", Term: 7, By: "host-1", Event: "lost", Reason: "expired", At: 1780000000000}
	fullOrder = Order{
		V: 1, ID: "ID", Kind: RunNow, Target: "report", Number: 9, By: "host-1", Why: "a customer waits", Within: 10000,
		Result: Refused, Detail: "overlap", Run: &Run{By: "host-2", Began: 1780000000123, Token: 8},
	}
)

// The formats are what other versions and other programs read: a text here changes only as
// docs/reference.md says. What is made is read back.
func TestFormats(t *testing.T) {
	type made struct {
		entry Entry
		ok    bool
	}
	day := 24 * time.Hour
	make := func(e Entry, ok bool) made { return made{e, ok} }
	for name, test := range map[string]struct {
		is   made
		want Entry
		read func(string) (any, bool)
		back any
	}{
		"run": {
			make(fullRun.Entry("job/report")),
			Entry{Journal: "runs/job/report", Most: 200, Keep: 40 * day, Text: `{"v":1,"job":"report","tick":1780000000000,"by":"host-1",` +
				`"began":1780000000123,"took":4567,"outcome":"failed","error":"timeout","attempt":2,"why":"late","token":18446744073709551615,` +
				`"trace":"0af7651916cd43dd8448eb211c80319c","order":"ID",` +
				`"attempts":[{"began":1780000000123,"took":12,"error":"canceled"},{"began":1780000001123,"took":13}]}`},
			reads(Parse[Run]), fullRun,
		},
		"short run": {
			make(Run{By: "me"}.Entry("k")),
			Entry{Journal: "runs/k", Most: 200, Keep: 40 * day, Text: `{"v":1,"by":"me","began":0,"token":0}`},
			reads(Parse[Run]), Run{V: 1, By: "me"},
		},
		"skip": {
			make(fullSkip.Entry("job/report", 3)),
			Entry{Journal: "skips/job/report", Class: "paused", Count: 3, Most: 10, Keep: 40 * day,
				Text: `{"v":1,"job":"report","tick":1780000000000,"reason":"paused","by":"host-1","held":"ann"}`},
			reads(Parse[Skip]), fullSkip,
		},
		"short skip": {
			make(Skip{Reason: "missed"}.Entry("k", 1)),
			Entry{Journal: "skips/k", Class: "missed", Count: 1, Most: 10, Keep: 40 * day, Text: `{"v":1,"tick":0,"reason":"missed","by":""}`},
			reads(Parse[Skip]), Skip{V: 1, Reason: "missed"},
		},
		"term": {
			make(fullTerm.Entry("jobs")),
			Entry{Journal: "terms/jobs", Most: 40, Keep: 40 * day,
				Text: `{"v":1,"election":"jobs","term":7,"by":"host-1","event":"lost","reason":"expired","at":1780000000000}`},
			reads(Parse[Term]), fullTerm,
		},
		"short term": {
			make(Term{Event: Elected}.Entry("e")),
			Entry{Journal: "terms/e", Most: 40, Keep: 40 * day, Text: `{"v":1,"election":"e","term":0,"by":"","event":"elected","at":0}`},
			reads(Parse[Term]), Term{V: 1, Election: "e", Event: "elected"},
		},
		"order": {
			make(Order{ID: "ID", Kind: Pause, By: "ann"}.Entry()),
			Entry{Journal: "orders", Most: 400, Keep: 40 * day, Text: `{"v":1,"id":"ID","kind":"pause","by":"ann"}`},
			reads(Parse[Order]), Order{V: 1, ID: "ID", Kind: Pause, By: "ann"},
		},
		"answer": {
			make(fullOrder.Entry()),
			Entry{Journal: "orders", Most: 400, Keep: 40 * day, Text: `{"v":1,"id":"ID","kind":"run_now","target":"report","number":9,"by":"host-1",` +
				`"why":"a customer waits","within":10000,"result":"refused","detail":"overlap","run":{"by":"host-2","began":1780000000123,"token":8}}`},
			reads(Parse[Order]), fullOrder,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, test.is.ok)
			require.Equal(t, test.want, test.is.entry)
			got, ok := test.read(test.want.Text)
			require.True(t, ok)
			require.Equal(t, test.back, got)
		})
	}

	card, ok := fullJob.Card()
	require.True(t, ok)
	require.Equal(t, Card{Kind: "jobs", ID: "job/report", Lifetime: 30 * time.Minute, Text: `{"v":1,"job":"report","key":"job/report",` +
		`"schedule":"0 * * * *","zone":"Europe/Berlin","program":"billing","election":"jobs","delivery":"at most once","catch_up":"last",` +
		`"overlap":"skip","next":1780000000000,"within":1000,"window":2000,"runbook":"https://x/y","by":"host-1","orders":true}`}, card)
	job, ok := Parse[Job](card.Text)
	require.True(t, ok)
	require.Equal(t, fullJob, job)
	card, ok = Job{Job: "j", Key: "k"}.Card()
	require.True(t, ok)
	require.Equal(t, `{"v":1,"job":"j","key":"k","schedule":"","by":"","orders":false}`, card.Text)

	process, ok := Parse[Process](`{"v":1,"process":"p","identity":"host-1","host":"host","pid":7,"program":"x/y","version":"v1.2.3","began":1780000000000,` +
		`"nodes":[{"node":"a:1","votes":true,"why":"timeout","since":9,"was":[{"votes":false,"why":"noauth","since":-1}]}],"running":[{"job":"report","by":"host-1","began":5,"token":6},{"job":"of nobody"}],` +
		`"elections":[{"identity":"of none"},{"election":"jobs","identity":"host-1","term":7,"since":8}],"jobs":["job/report"],"cut":true}`)
	require.True(t, ok)
	require.Equal(t, Process{
		V: 1, Process: "p", Identity: "host-1", Host: "host", PID: 7, Program: "x/y", Version: "v1.2.3", Began: 1780000000000,
		Nodes: []NodeSeen{{"a:1", Turn{true, "timeout", 9}, []Turn{{Why: "noauth"}}}}, Running: []Run{{Job: "report", By: "host-1", Began: 5, Token: 6}},
		Elections: []Candidacy{{"jobs", "host-1", 7, 8}}, Jobs: []string{"job/report"}, Cut: true,
	}, process)
	process, ok = Parse[Process](`{"v":1,"cut":true}`)
	require.True(t, ok)
	require.Equal(t, Process{V: 1, Cut: true}, process)
	of := Process{Nodes: []NodeSeen{{Node: "a:1", Was: []Turn{{Votes: true}}}, {Node: "b:1"}, {Node: "c:1"}}, Elections: []Candidacy{{Election: "e"}, {Election: "f"}}, Jobs: []string{"j", strings.Repeat("\x01", 1000)}}
	process, _ = Parse[Process](of.Card().Text)
	require.Len(t, of.Nodes[0].Was, 1, "it is the process's own")
	of.V, of.Cut, of.Jobs, of.Nodes[0].Was = 1, true, of.Jobs[:1], nil
	require.Equal(t, of, process)

	// Without the past of the nodes the lists have room.
	of = Process{Nodes: []NodeSeen{{Node: "a:1", Was: []Turn{{Why: strings.Repeat("\x01", 600)}}}}, Jobs: []string{strings.Repeat("j", 3000)}}
	process, _ = Parse[Process](of.Card().Text)
	require.Equal(t, Process{V: 1, Nodes: []NodeSeen{{Node: "a:1"}}, Jobs: of.Jobs}, process, "all jobs are there")
}

// What a newer version adds is passed over, and the rest is read.
func TestNewerVersions(t *testing.T) {
	for name, p := range parsers {
		want, ok := p.parse(p.text)
		require.True(t, ok, name)
		newer := strings.Replace(p.text, `{"v":1,`, `{"new":{"by":["x",null,{}]},"v":2,"Later":1e300,`, 1)
		got, ok := p.parse(newer)
		require.True(t, ok, name)
		// But for the version it is the same.
		require.Equal(t, strings.Replace(jsonOf(t, want), `"v":1`, `"v":2`, 1), jsonOf(t, got), name)
	}
}

// What is no text of a kind is refused, by each of them.
func TestWhatIsNone(t *testing.T) {
	common := []string{
		"", " ", "{", "null", "[]", "1", `"x"`, "{}", `{"v":1}x`, `{"v":"1","by":"me"}`, "\xff", `{"v":1,"identity":{}}`, `{"v":0}`, `{"v":-1}`,
		`{"v":9999999999999999999}`,
	}
	own := map[string][]string{
		"job":     {`{"v":1,"job":"j"}`, `{"v":1,"key":"k"}`, `{"job":"j","key":"k"}`},
		"run":     {`{"v":1,"job":"j"}`, `{"v":1,"by":7}`, `{"v":1,"by":"me","token":-1}`, `{"v":1,"by":"me","took":1.5}`},
		"skip":    {`{"v":1,"by":"me"}`, `{"reason":"paused"}`},
		"term":    {`{"v":1,"by":"me"}`, `{"event":"lost"}`},
		"order":   {`{"v":1,"id":"i"}`, `{"v":1,"kind":"pause"}`, `{"id":"i","kind":"pause"}`, `{"v":1,"kind":"pause","id":"` + strings.Repeat("i", 65) + `"}`},
		"process": {`{"identity":"me"}`},
	}
	for name, p := range parsers {
		texts := append(slices.Clone(common), own[name]...)
		texts = append(texts, p.text+strings.Repeat(" ", MaxCardText))
		for _, text := range texts {
			got, ok := p.parse(text)
			require.False(t, ok, "%s: %.80s", name, text)
			require.Equal(t, jsonOf(t, got), jsonOf(t, zeros[name]), "%s: %.80s", name, text)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(parsers)), slices.Collect(maps.Keys(zeros)))
}

var zeros = map[string]any{"job": Job{}, "run": Run{}, "skip": Skip{}, "term": Term{}, "order": Order{}, "process": Process{}}

// A run that failed is in a second journal, too, and no other: not one that an operator ended.
func TestFailedRunsAreEnteredTwice(t *testing.T) {
	for _, outcome := range []string{OK, Cancelled, Failed, Panicked, Lost, NotBegun, CutShort} {
		e, ok := Run{By: "me", Outcome: outcome}.Entry("k")
		require.True(t, ok)
		want := []Entry{e}
		if outcome != OK && outcome != Cancelled {
			want = append(want, Entry{Journal: "failed/k", Text: e.Text, Most: 50, Keep: e.Keep})
		}
		require.Equal(t, want, Run{By: "me", Outcome: outcome}.Entries("k"))
	}
	require.Empty(t, Run{By: "me", Outcome: Failed}.Entries("\xff"))
	require.Empty(t, Run{By: "me", Outcome: Failed}.Entries(strings.Repeat("k", MaxID)))
}

// An order is for its target and for no other, so that it is not given with a part of its name.
func TestTargetsOfOrders(t *testing.T) {
	long := strings.Repeat("x", 900)
	e, ok := Order{ID: "ID", Kind: RunNow, Target: long, By: strings.Repeat("\x01", 256), Why: strings.Repeat("y", 256)}.Entry()
	require.True(t, ok)
	o, ok := Parse[Order](e.Text)
	require.True(t, ok)
	require.Equal(t, long, o.Target)
	for _, target := range []string{strings.Repeat("x", 2048), strings.Repeat("\x01", 512), "\xff"} {
		_, ok := Order{ID: "ID", Kind: RunNow, Target: target}.Entry()
		require.False(t, ok, "%.20q", target)
		_, ok = Order{ID: "ID", Kind: RunNow, Target: target, Result: Done}.Entry()
		require.True(t, ok, "an answer has its id: %.20q", target)
	}
	control := strings.Repeat("\x01", 256)
	run := Run{By: control, Outcome: control, Why: control, Trace: control, Order: control}
	e, ok = Order{ID: control[:maxID], Kind: RunNow, Result: Done, Run: &run}.Entry()
	require.True(t, ok)
	require.LessOrEqual(t, len(e.Text), MaxEntryText)
	o, _ = Parse[Order](e.Text)
	require.Equal(t, control[:maxID], o.ID)
	require.Len(t, run.By, 256, "the caller's stays")
	for _, id := range []string{"", strings.Repeat("i", 65), "\xff"} {
		_, ok := Order{ID: id, Kind: RunNow, Result: Done}.Entry()
		require.False(t, ok)
	}
}

// The last attempts of a run are told, and their texts leave the run room.
func TestManyAttempts(t *testing.T) {
	full := strings.Repeat("\x01", 256)
	r := Run{By: full, Began: maxTime, Took: maxTime, Tick: maxTime, Outcome: full, Error: full, Attempt: 1 << 60, Why: full, Token: 1 << 63, Trace: full, Order: full, Report: full}
	for i := range int64(100) {
		r.Attempts = append(r.Attempts, Attempt{maxTime - 99 + i, maxTime, full})
	}
	e, ok := r.Entry("k")
	require.True(t, ok)
	require.LessOrEqual(t, len(e.Text), maxRunText)
	told, ok := Parse[Run](e.Text)
	require.True(t, ok)
	require.Len(t, told.Attempts, mostAttempts)
	require.EqualValues(t, maxTime, told.Attempts[mostAttempts-1].Began)
	told, ok = Parse[Run](`{"v":1,"by":"a","attempts":[{"began":-1,"took":-1}]}`)
	require.True(t, ok)
	require.Empty(t, told.Attempts, "one is the run itself")
}

// A key that the board does not take makes no entry.
func TestKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"k": true, strings.Repeat("k", redlock.MaxKeyLength): true, strings.Repeat("k", MaxID): false, "\xff": false, "a/\x00 {b}": true,
	} {
		_, ok := Run{By: "me"}.Entry(key)
		require.Equal(t, want, ok, "%.20q", key)
		_, ok = Skip{Reason: "r"}.Entry(key, 1)
		require.Equal(t, want, ok, "%.20q", key)
		_, ok = Term{Event: Elected}.Entry(key)
		require.Equal(t, want, ok, "%.20q", key)
	}
	for i, job := range []Job{
		{Key: "k"}, {Job: "j"}, {Job: "\xff", Key: "k"}, {Job: "j", Key: "\xff"}, {Job: "j", Key: strings.Repeat("k", MaxID+1)},
		{Job: strings.Repeat("\x01", 1024), Key: "k"},
	} {
		_, ok := job.Card()
		require.False(t, ok, fmt.Sprint(i))
	}
	_, ok := Job{Job: strings.Repeat("<", 1010), Key: "job/" + strings.Repeat("<", 1010)}.Card()
	require.True(t, ok)
	control := strings.Repeat("\x01", 256)
	card, ok := Job{Job: control, Key: "k" + control, Schedule: control, Zone: control, Program: control, Election: control, By: control}.Card()
	require.True(t, ok)
	job, ok := Parse[Job](card.Text)
	require.True(t, ok)
	require.Equal(t, control, job.Job)
	require.Equal(t, "k"+control, job.Key)
	require.NotEmpty(t, job.By)
	long := strings.Repeat("x", 400)
	p, ok := Parse[Process](Process{Process: "p", Host: long, Jobs: []string{long}, Running: []Run{{Job: long, By: long}}, Elections: []Candidacy{{Election: long, Identity: long}}}.Card().Text)
	require.True(t, ok)
	require.Equal(t, []string{long, long, long}, []string{p.Jobs[0], p.Running[0].Job, p.Elections[0].Election})
	require.Equal(t, []string{long[:256], long[:256], long[:256]}, []string{p.Host, p.Running[0].By, p.Elections[0].Identity})
	e, ok := Skip{Reason: long, Holder: "<\xff\x00", Tick: maxTime + 1}.Entry("k", 1)
	require.True(t, ok)
	require.Equal(t, `{"v":1,"tick":0,"reason":"`+long[:256]+`","by":"","held":"<?\u0000"}`, e.Text)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A process remembers the last turns of a node, and a turn begins only where something has changed.
func TestTurnsOfANode(t *testing.T) {
	var n NodeSeen
	for at := range int64(10) {
		n.See(at%2 == 0, "", 1+at)
		n.See(at%2 == 0, "", 100+at)
	}
	require.Equal(t, Turn{Since: 10}, n.Turn)
	require.Len(t, n.Was, mostTurns)
	require.Equal(t, Turn{Votes: true, Since: 9}, n.Was[0])
}
