package joblog_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/timetable"
)

// life is a job, the register that keeps its record, and what people were told.
type life struct {
	t      require.TestingT
	kept   []byte // in the register
	policy joblog.Policy
	def    joblog.Definition
	table  joblog.Table
	token  uint64
	told   []string
}

func newLife(t require.TestingT, def joblog.Definition, made string, policy joblog.Policy) *life {
	l := &life{t: t, policy: policy}
	l.deploy(def, made)
	return l
}

func (l *life) read() joblog.Record {
	r, err := joblog.Parse(l.kept, at("2400h"))
	require.NoError(l.t, err)
	return r
}

// fill begins a backfill.
func (l *life) fill(from, to, now string) {
	r, ok := l.read().Backfill(at(from), at(to), at(now))
	require.True(l.t, ok)
	l.write(r)
}

func (l *life) write(r joblog.Record) {
	var err error
	l.kept, err = r.Encode()
	require.NoError(l.t, err)
}

func (l *life) tell(format string, args ...any) {
	l.told = append(l.told, fmt.Sprintf(format, args...))
}

func (l *life) tellLeft(left []joblog.Left) {
	for _, s := range left {
		l.tell("%s %s..%s %d", s.Reason, clock(s.First), clock(s.Last), s.Count)
	}
}

func clock(at time.Time) string {
	text := at.Sub(midnight).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

// deploy starts a replica with a definition.
func (l *life) deploy(def joblog.Definition, when string) {
	r, table := joblog.Adopt(l.read(), def, at(when))
	l.def, l.table = def, table
	l.write(r)
}

func (l *life) owed(when string) joblog.Verdict {
	return joblog.Owed(l.read(), l.table, l.policy, at(when))
}

// begin does what the log owes at a time, and returns the verdict. If nothing is due, what is to be
// settled is.
func (l *life) begin(when string) joblog.Verdict {
	v := l.owed(when)
	if !v.CutShort.Began.IsZero() {
		l.tell("cut_short %s", clock(v.CutShort.Tick))
	}
	l.tellLeft(v.Left)
	switch {
	case v.Due:
		l.grant(v, at(when))
		l.tell("%s %s #%d", v.Why, clock(v.Tick), v.Attempt)
	case v.Settles:
		l.write(joblog.Settle(l.read(), l.table, v, at(when)))
	}
	return v
}

func (l *life) grant(v joblog.Verdict, when time.Time) {
	l.token++
	l.write(joblog.Begin(l.read(), l.table, l.policy, v, joblog.Grant{Token: l.token, By: "replica", At: when}))
}

// order begins a run of RunNow.
func (l *life) order(when string) { l.grant(joblog.Verdict{Why: joblog.Ordered}, at(when)) }

func (l *life) end(when string, outcome joblog.Outcome, took time.Duration) {
	r, left := joblog.End(l.read(), l.table, l.policy, joblog.Ending{Outcome: outcome, At: at(when), Own: at(when), Took: took})
	l.tellLeft(left)
	l.write(r)
}

// run begins what is owed, if anything is, and ends it some time later.
func (l *life) run(when string, took time.Duration) joblog.Verdict {
	v := l.begin(when)
	if v.Due {
		l.end(at(when).Add(took).Sub(midnight).String(), joblog.Succeeded, took)
	}
	return v
}

// requireTold compares what people were told since the last time.
func (l *life) requireTold(want ...string) {
	require.Equal(l.t, want, l.told)
	l.told = nil
}

// TestMain has more random checks made than rapid's 100, which would find little here: they are
// fast.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "3000"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// midnight is where the tests' times count from.
var midnight = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

// at reads a time after midnight, as "26h30m".
func at(text string) time.Time {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return midnight.Add(d)
}

// list is a table of single due times, ascending.
type list struct {
	from  time.Time
	times []time.Time
}

func (l list) From() time.Time { return l.from }

func (l list) Next(after time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(l.times, after.Add(1), time.Time.Compare)
	if i == len(l.times) {
		return time.Time{}
	}
	return l.times[i]
}

// schedule is the definition of one.
func schedule(s timetable.Spec) joblog.Definition {
	d, err := timetable.New(s)
	if err != nil {
		panic(err)
	}
	return d
}

// every is a definition whose due times count from since.
func every(period time.Duration) joblog.Definition {
	return schedule(timetable.Spec{Kind: timetable.Interval, Every: period})
}

// atOnce is one that begins when it is made.
func atOnce(period time.Duration) joblog.Definition {
	return schedule(timetable.Spec{Kind: timetable.Interval, Every: period, AtOnce: true})
}

// chained is a definition whose runs decide what is next.
func chained(pause time.Duration, fromEnd bool) joblog.Definition {
	return schedule(timetable.Spec{Kind: timetable.Random, Every: pause, Most: pause, FromEnd: fromEnd})
}

// counted is a table that counts what it is asked.
type counted struct {
	joblog.Table
	n *int
}

func (c counted) Next(after time.Time) time.Time {
	*c.n++
	return c.Table.Next(after)
}

// asked returns how often a table of each second is asked by a verdict after some time away.
func asked(t *testing.T, p joblog.Policy, away time.Duration) int {
	n := 0
	table := counted{every(time.Second).Table(midnight), &n}
	v := joblog.Owed(joblog.Record{Since: midnight, Cursor: midnight}, table, p, midnight.Add(away))
	require.True(t, v.Due)
	return n
}

// Back after 30 days, 2.6 million ticks were computed. What is left out is counted up to a bound.
func TestVerdictsCostDoesNotGrowWithTheTimeAway(t *testing.T) {
	for _, p := range []joblog.Policy{none, latest(time.Minute), latest(365 * 24 * time.Hour), all, {CatchUp: joblog.CatchUpAll, Window: 365 * 24 * time.Hour}} {
		require.LessOrEqual(t, asked(t, p, time.Second), 8, "%+v", p)
		for _, away := range []time.Duration{time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour} {
			require.LessOrEqual(t, asked(t, p, away), 2*joblog.MaxCount+400, "%+v %v", p, away)
		}
	}
}

// Many ticks long ago are not walked over either.
func TestVerdictsCostDoesNotGrowWithABurst(t *testing.T) {
	n := 0
	table := counted{schedule(timetable.Spec{Kind: timetable.Interval, Every: time.Second, Stop: at("700h")}).Table(midnight), &n}
	v := joblog.Owed(joblog.Record{Since: midnight}, table, latest(8760*time.Hour), at("1300h"))
	require.Equal(t, at("699h59m59s"), v.Tick)
	require.LessOrEqual(t, n, joblog.MaxCount+400)
}

// Nor does it with what a run overlapped.
func TestOverlapsCostDoesNotGrowWithTheRun(t *testing.T) {
	n := 0
	table := counted{every(time.Second).Table(midnight), &n}
	for _, p := range []joblog.Policy{none, queuing} {
		r := joblog.Begin(joblog.Record{Since: midnight}, table, p, joblog.Verdict{Tick: at("1s"), Attempt: 1}, joblog.Grant{At: at("1s")})
		n = 0
		r, left := joblog.End(r, table, p, joblog.Ending{Outcome: joblog.Succeeded, At: at("8760h"), Took: 8759 * time.Hour})
		require.LessOrEqual(t, n, joblog.MaxCount+400)
		require.Equal(t, joblog.MaxCount, left[0].Count)
		require.True(t, r.Cursor.After(at("8758h")))
	}
}

func TestFullestRecordFits(t *testing.T) {
	r := joblog.Fullest()
	text, err := r.Encode()
	require.NoError(t, err)
	require.Equal(t, byte('1'), text[0])
	require.Less(t, len(text), joblog.MaxSize)
	back, err := joblog.Parse(text, at("9000h"))
	require.NoError(t, err)
	require.Equal(t, r.Beside[7].To.UTC(), back.Beside[7].To.UTC())
	require.Equal(t, r.Run.By, back.Run.By)

	r.Words = strings.Repeat("<", joblog.MaxWords) // the text of an own Cron, say
	_, err = r.Encode()
	require.NoError(t, err)

	r.Words = strings.Repeat("w", joblog.MaxSize)
	_, err = r.Encode()
	require.ErrorContains(t, err, "longer than 4096")
}

// The text is what the nodes of a running fleet keep: a change needs another version.
func TestRecordsText(t *testing.T) {
	l := newLife(t, every(time.Hour), "0s", joblog.Policy{CatchUp: joblog.CatchUpAll, Window: time.Hour, Delivery: joblog.AtLeastOnce})
	require.Equal(t, `1{"def":"every 1h0m0s","since":"2026-03-02T00:00:00Z"}`, string(l.kept))
	l.begin("1h0m0.25s")
	require.Equal(t, `1{"def":"every 1h0m0s","since":"2026-03-02T00:00:00Z",`+
		`"run":{"tick":"2026-03-02T01:00:00Z","attempt":1,"why":"on_time","token":1,"by":"replica","began":"2026-03-02T01:00:00.25Z"},`+
		`"again":{"tick":"2026-03-02T01:00:00Z","n":1},"runs":1}`, string(l.kept))
	l.end("1h30m0.25s", joblog.Succeeded, 30*time.Minute)
	require.Equal(t, `1{"def":"every 1h0m0s","since":"2026-03-02T00:00:00Z","cursor":"2026-03-02T01:00:00Z",`+
		`"run":{"tick":"2026-03-02T01:00:00Z","attempt":1,"why":"on_time","token":1,"by":"replica","began":"2026-03-02T01:00:00.25Z",`+
		`"ended":"2026-03-02T01:30:00.25Z","outcome":"ok","took":1800000000000},`+
		`"runs":1,"ok":{"tick":"2026-03-02T01:00:00Z","ended":"2026-03-02T01:30:00.25Z"}}`, string(l.kept))
}

func TestTextsThatAreNoRecord(t *testing.T) {
	for name, text := range map[string]string{
		"another version": "2{}",
		"no version":      "{}",
		"no fields":       "1",
		"cut off":         `1{"def":"every`,
		"unknown field":   `1{"defs":"x"}`,
		"trailing bytes":  `1{}{}`,
		"trailing junk":   `1{}]`,
		"no time":         `1{"since":"yesterday"}`,
		"negative count":  `1{"runs":-1}`,
		"too many spans":  `1{"beside":[` + strings.Repeat(`{"from":"2026-03-02T00:00:00Z","to":"2026-03-02T00:00:00Z"},`, 8) + `{"from":"2026-03-02T00:00:00Z","to":"2026-03-02T00:00:00Z"}]}`,
		"too long":        `1{"def":"` + strings.Repeat("w", joblog.MaxSize) + `"}`,
		"a number of now": "1 1764150000000",
		"settled ahead":   `1{"cursor":"2026-03-03T00:00:01Z"}`,
		"made ahead":      `1{"since":"2026-03-03T00:00:01Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r, err := joblog.Parse([]byte(text), midnight)
			require.ErrorContains(t, err, "joblog: ")
			require.Zero(t, r)
		})
	}
	r, err := joblog.Parse(nil, midnight)
	require.NoError(t, err, "a job that nobody has seen")
	require.Zero(t, r)
}

// Records that are drawn come back as they were.
func TestRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		r.Words = rapid.StringN(0, 200, joblog.MaxWords).Draw(t, "words")
		text, err := r.Encode()
		require.NoError(t, err)
		back, err := joblog.Parse(text, at("9000h"))
		require.NoError(t, err)
		require.Equal(t, r, back)
	})
}
