package joblog_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/joblog"
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
	r, left := joblog.End(l.read(), l.table, l.policy, joblog.Ending{Outcome: outcome, At: at(when), Took: took})
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
