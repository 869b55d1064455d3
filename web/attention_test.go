package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// runsOf are runs that ended so many minutes ago, by their outcomes, the newest first.
func runsOf(outcomes ...string) (all []view.Past) {
	for i, outcome := range outcomes {
		at := view.At(time.Now().Add(-time.Duration(i+1) * time.Minute))
		all = append(all, view.Past{Job: "j", Replica: "r", Tick: at, Began: at, Took: view.Span(time.Second), Outcome: outcome, Token: view.Number(1000 - i)})
	}
	return all
}

func rowOf(name string, runs []view.Past) *view.Job {
	r := view.NewJob(admin.JobStatus{Name: name}, time.Now())
	r.Runs = runs
	if len(runs) > 0 {
		r.Last, r.Failing = &runs[0], runs[0].Failed()
		r.State = map[bool]string{false: view.OK, true: view.Failing}[r.Failing]
	}
	return r
}

// What is read first: whether anything is wrong, for the cluster or for who asks.
func TestHeadline(t *testing.T) {
	node := func(name string, votes bool, seen ...view.Seen) view.Node {
		return view.Node{Node: name, ThisProcess: true, Votes: &votes, Reachable: votes, Error: map[bool]string{false: "node " + name + ": observe: timed out"}[votes], SeenBy: seen}
	}
	since := time.Now().Add(-time.Minute)
	saw := func(votes bool, ago time.Duration) view.Seen {
		return view.Seen{Replica: "x", Votes: votes, Said: view.At(time.Now().Add(-ago))}
	}
	good := []view.Node{node("1", true), node("2", true), node("3", true)}
	begins, jumped, lacks, wrong, differs, apart := node("3", false), node("3", false), node("2", false, saw(false, 0)), node("3", true), node("3", true), node("3", false, saw(true, 0))
	begins.QuarantinedUntil, jumped.QuarantinedUntil, jumped.ErrorType = view.At(time.Now()), view.At(time.Now()), "clock_jumped"
	lacks.Votes, lacks.Error, lacks.ErrorType = nil, "node 2: acquire: noperm: PEXPIRE (give the user +ping)", "noperm"
	wrong.Warnings, differs.Warnings = []view.Warning{{Type: "clock_wrong", Text: "a minute"}}, []view.Warning{{Type: "another_list", Text: "y has others"}}
	apart.Reachable, apart.Error, apart.ErrorType = true, "node 3: acquire: another_list: y has others (seen 1.5s ago, as 3 knows) (give all the same)", "another_list"
	refused := func(name string, votes bool) view.Node {
		n := node(name, false, saw(votes, 5*time.Second))
		n.Votes, n.Error, n.ErrorType = nil, "node "+name+": exchange: noauth: WRONGPASS", "noauth"
		return n
	}
	down := func(name string) view.Node {
		n := node(name, false)
		n.Error = "node " + name + ": observe: dial tcp [::" + name + "]:6379: connect: connection refused"
		return n
	}
	before := refused("3", false)
	before.SeenBy[0].Said = view.At(since.Add(-time.Second)) // it has begun to answer since
	unread := rowOf("unread", runsOf("ok"))
	unread.State, unread.Error = view.Unknown, "no quorum"
	ok := rowOf("ok", runsOf("ok"))
	paused := rowOf("paused", runsOf("failed"))
	paused.State, paused.Paused = view.Paused, &view.Pause{By: "ann"}
	halted := rowOf("halted", runsOf("failed"))
	halted.State, halted.Paused = view.Paused, &view.Pause{By: "ann", All: true}
	for _, c := range []struct {
		nodes []view.Node
		jobs  []*view.Job
		want  string
		words string // of its rows
		stale int    // parts that are not shown as they are
	}{
		{nodes: good, jobs: []*view.Job{ok}, want: "Nothing is urgent", stale: 1},
		{nodes: good, jobs: []*view.Job{halted}, want: "Nothing is urgent"},
		{nodes: good, jobs: []*view.Job{ok}, want: "All is well"},
		{nodes: good, jobs: []*view.Job{ok, paused}, want: "All is well"},
		{nodes: good, want: "No replica tells of a job or an election"},
		{nodes: good, jobs: []*view.Job{ok, rowOf("a", runsOf("ok", "failed")), rowOf("b", runsOf("failed", "ok"))}, want: "1 job needs someone"},
		{nodes: []view.Node{good[0], good[1], node("3", false)}, jobs: []*view.Job{ok}, want: "1 node needs someone", words: "silent: timed out"},
		{nodes: []view.Node{good[0], good[1], begins}, jobs: []*view.Job{ok}, want: "1 node needs someone", words: "quarantine: It may have forgotten leases, so it does not vote for a while."},
		{nodes: []view.Node{good[0], good[1], jumped}, jobs: []*view.Job{ok}, want: "1 node needs someone", words: "quarantine: Its clock jumped forward. It may have forgotten leases, so it does not vote for a while."},
		{nodes: []view.Node{good[0], lacks, good[2]}, jobs: []*view.Job{ok}, want: "1 node needs someone", words: "no vote: noperm: PEXPIRE"},
		{nodes: []view.Node{good[0], refused("2", false), refused("3", false)}, jobs: []*view.Job{unread}, want: "Nothing is granted: 1 of 3 nodes vote, as replicas say, 2 are needed", words: "no vote: noauth: WRONGPASS"},
		{nodes: []view.Node{good[0], down("2"), down("3")}, jobs: []*view.Job{ok}, want: "Nothing is granted: 1 of 3 nodes vote, 2 are needed", words: "silent: connect: connection refused"},
		{nodes: []view.Node{refused("1", true), node("2", false), node("3", false)}, jobs: []*view.Job{ok}, want: "Nothing is granted: 1 of 3 nodes vote at most, 2 are needed", words: "silent: timed out"},
		{nodes: []view.Node{refused("1", true), refused("2", true), refused("3", false)}, jobs: []*view.Job{ok}, want: "1 node needs someone", words: "no vote: noauth: WRONGPASS"},
		{nodes: []view.Node{refused("1", true), refused("2", true), before}, jobs: []*view.Job{ok}, want: "All is well, as far as this page may know"},
		{nodes: []view.Node{good[0], good[1], wrong}, jobs: []*view.Job{ok}, want: "Nothing is urgent", words: "warning: a minute"},
		{nodes: []view.Node{good[0], good[1], differs}, jobs: []*view.Job{ok}, want: "Two leases may be live at once: processes have other nodes", words: "warning: y has others"},
		{nodes: []view.Node{good[0], node("2", true, saw(false, 55*time.Second)), good[2]}, jobs: []*view.Job{ok}, want: "All is well"},
		{nodes: []view.Node{good[0], node("2", false, saw(true, 55*time.Second)), node("3", false)}, jobs: []*view.Job{ok}, want: "Nothing is granted: 1 of 3 nodes vote, 2 are needed", words: "silent: timed out"},
		{nodes: []view.Node{good[0], node("2", false, saw(true, 0)), node("3", false, saw(true, 0))}, jobs: []*view.Job{ok}, want: "1 of 3 nodes vote for this page; replicas have more", words: "seen apart: It votes for x, and not for this process: timed out"},
		{nodes: []view.Node{good[0], good[1], apart}, jobs: []*view.Job{ok}, want: "1 node needs someone", words: "no vote: another_list: y has others"},
	} {
		s := &snapshot{nodes: c.nodes, jobs: c.jobs, turned: map[string]time.Time{"2": since, "3": since}}
		s.read[partJobs].At = time.Now()
		a := attentionOf(s)
		require.Equal(t, c.want, a.headline(s, c.stale))
		require.Equal(t, strings.HasPrefix(c.want, "Nothing is granted"), strings.Contains(sentence(s, a), "nothing is granted"), c.want)
		words := ""
		for _, row := range append(a.nodes, a.wait...) { // one for all nodes with the same
			words += row.Word + ": " + row.Why
		}
		require.Equal(t, c.words, words)
	}
}

// The lane of a node has its past as replicas tell it, and what it is now. What nobody tells of is
// left open.
func TestLaneOfANode(t *testing.T) {
	yes, ago := true, func(d time.Duration) view.Time { return view.At(time.Now().Add(-d)) }
	marks := func(n view.Node) (classes []string) {
		n.Node, n.Votes, n.ThisProcess = "n", &yes, true
		drawn := windowOf(time.Hour, 15*time.Minute).node(n, &snapshot{nodes: []view.Node{n}})
		for _, mark := range regexp.MustCompile(`<path class="([a-z]+)" d="M(\d+)`).FindAllStringSubmatch(string(drawn), -1) {
			at, err := strconv.Atoi(mark[2])
			require.NoError(t, err)
			classes = append(classes, fmt.Sprint(mark[1], " ", (at+5)/10)) // an axis ends up to five seconds later
		}
		return classes
	}
	require.Empty(t, marks(view.Node{}), "nobody says anything")
	require.Empty(t, marks(view.Node{SeenBy: []view.Seen{{Votes: true, Said: ago(0)}}}), "nor since when")
	a := view.Seen{Replica: "a", Votes: true, Since: ago(2 * time.Hour), Said: ago(0)}
	require.Equal(t, []string{"votes 0"}, marks(view.Node{SeenBy: []view.Seen{a}}))
	b := view.Seen{Replica: "b", Votes: true, Since: ago(15 * time.Minute), Said: ago(0), Was: []view.Turn{
		{Why: "quarantined", Since: ago(30 * time.Minute)}, {Why: "timeout", Since: ago(45 * time.Minute)}, {Votes: true, Since: ago(2 * time.Hour)}, {Since: ago(3 * time.Hour)},
	}}
	require.Equal(t, []string{"votes 0", "quarantine 40", "silent 20"}, marks(view.Node{SeenBy: []view.Seen{a, b}}))
	off := view.Seen{Replica: "b", Why: "timeout", Since: ago(15 * time.Minute), Said: ago(0)}
	require.Contains(t, marks(view.Node{SeenBy: []view.Seen{a, off}}), "silent 60", "and it is so still")
}

// textIn is markup without its elements.
func textIn(is markup) string {
	for text := string(is); ; {
		before, rest, found := strings.Cut(text, "<")
		if !found {
			return text
		}
		_, after, _ := strings.Cut(rest, ">")
		text = before + after
	}
}

// A lane has links to the runs that failed, up to a bound, and one path for all others. A run that
// was cut short has a torn edge.
func TestLanes(t *testing.T) {
	w := windowOf(time.Hour, 15*time.Minute)
	l, ok := w.job(rowOf("j", runsOf("cut_short", "failed", "ok", "ok")))
	require.True(t, ok)
	drawn := string(l.draw())
	require.Equal(t, 2, strings.Count(drawn, `<a href="run?name=j&amp;token=`))
	require.Equal(t, 1, strings.Count(drawn, `class="zig"`))
	require.Equal(t, 1, strings.Count(drawn, `<path class="ok"`))
	require.Contains(t, drawn, `role="group" aria-label="j: cut short, 1 cut short, 1 failed, 2 ok"`)
	_, ok = w.job(rowOf("quiet", nil))
	require.False(t, ok, "it has nothing to show")
	begins := &oneJobDoc{Job: &view.Job{State: view.Running, Running: &view.Run{}}, s: new(snapshot)} // it has the lease, and no record says since when
	l, _ = w.job(begins.Job)
	require.Equal(t, "begins", string(l.note))
	require.NotContains(t, textIn(begins.draw(new(page))), "began", "it said: began –, no tick")

	many := rowOf("j", runsOf(strings.Split(strings.Repeat("failed ", 55), " ")[:55]...))
	l, _ = w.job(many)
	require.Equal(t, mostLinks, strings.Count(string(l.marks), "<a "))
	n, on, first := streak(many.Runs)
	require.Equal(t, []any{55, 55, &many.Runs[54]}, []any{n, on, first})
	many.Runs[54].Replica, many.Last.Error = "q", "*errors.errorString"
	_, why, hint := because(many, new(snapshot))
	require.Equal(t, "The last 55 runs failed, 54 on r: *errors.errorString. The log of r says more.", strings.TrimSpace(textIn(why+" "+hint)))
}

// Runs that are read are put before those that are known, unless some were not read.
func TestJoined(t *testing.T) {
	all := runsOf(strings.Split(strings.Repeat("ok ", 60), " ")[:60]...)
	require.Equal(t, all, joined(all[:runsShown], all[5:]))
	require.Equal(t, all[:runsShown], joined(all[:runsShown], all[30:]), "there is a gap")
	require.Equal(t, all[:3], joined(all[:3], all[1:]), "these are all")
}

// What replicas said of the nodes before they could not be read is not the present for ever.
func TestSeenLongAgo(t *testing.T) {
	s := &snapshot{replicas: []admin.Replica{{Nodes: []admin.Seen{{Node: "a", Votes: true}}}}}
	s.read[partReplicas].At = time.Now()
	for after, want := range map[time.Duration]int{time.Second: 1, 2 * time.Minute: 0} {
		require.Len(t, withReplicas(nil, time.Now().Add(after), s)[0].SeenBy, want)
	}
}

// A run that was cut short and is run again said that its tick was due, and to run it now.
func TestCutShortAndRunning(t *testing.T) {
	r, p := rowOf("j", runsOf("cut_short")), &page{Acts: true}
	r.Next = view.At(time.Now().Add(-time.Second))
	require.Contains(t, textIn(p.drawMatter(r, new(snapshot))), "Run now")
	r.Running = &view.Run{Job: "j", Replica: "q", Attempt: 2}
	drawn := textIn(p.drawMatter(r, new(snapshot)))
	require.Contains(t, drawn, "What it had done is not known. It runs now on q.")
	require.NotContains(t, drawn, "Run now")
	require.NotContains(t, drawn, "due")
	r.Late = true
	_, why, _ := because(r, new(snapshot))
	require.Equal(t, "Its last run was cut short on r.", textIn(why))
}

// A cause that says what to do gets no other advice: of an expired certificate it was said to see
// whether the server is up.
func TestCauseWithAdvice(t *testing.T) {
	no := false
	for cause, advice := range map[string]bool{"timed out": true, "tls: x509: certificate has expired (renew the server's certificate)": false} {
		s := &snapshot{nodes: []view.Node{{Node: "n", ThisProcess: true, Votes: &no, Error: "node n: observe: " + cause}}}
		drawn := textIn(drawTrouble(s.cluster().Troubles()[0]))
		require.Contains(t, drawn, strings.ReplaceAll(cause, "'", "&#39;"))
		require.Equal(t, advice, strings.Contains(drawn, "See whether it is up"), drawn)
	}
}

// atNoon runs a test in a bubble at noon: a time of day has a date beside it where it is not
// today's.
func atNoon(t *testing.T, test func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour)
		test(t)
	})
}

// A run that does not end is why no run ends well, and was not told of there.
func TestOverdueAndRunning(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		r := rowOf("j", runsOf("ok"))
		r.Overdue, r.Failing, r.State, r.Succeeded = true, true, view.Failing, view.At(time.Now())
		r.Running = &view.Run{Job: "j", Replica: "q", Began: view.At(time.Now().Add(-time.Hour))}
		_, why, hint := because(r, new(snapshot))
		require.Regexp(t, `^No run has ended well for longer than the job allows. Last ok [0-9:]+\. It runs now on q, since [0-9:]+\.$`, textIn(why+" "+hint))
	})
}

// How long the runs before it took says whether a run that goes on hangs.
func TestRunningForHowLong(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		r := rowOf("j", runsOf("ok", "ok"))
		r.Runs[1].Took, r.State, r.Running = view.Span(3*time.Second), view.Running, &view.Run{Job: "j", Replica: "q", Began: view.At(time.Now().Add(-time.Hour))}
		since, why, hint := because(r, new(snapshot))
		require.Regexp(t, `^began 1 h 0 min ago It runs now on q, since [0-9:]+\. The last 2 runs took 3\.0 s at most\.$`, textIn(since+" "+why+" "+hint))
		r.Runs = nil
		_, _, hint = because(r, new(snapshot))
		require.Empty(t, hint)
	})
}

// With no node that answers the page said that an election has a leader, and that no job is late.
func TestGoodNewsIsRead(t *testing.T) {
	s := &snapshot{jobs: []*view.Job{rowOf("ok", runsOf("ok"))}, elections: []electionRow{{Election: view.Election{Name: "e", Leader: &view.Leader{}}}}}
	s.read[partJobs].At = time.Now()
	require.Equal(t, "1 election has a leader. No job is late.", sentence(s, attentionOf(s)))
	s.read[partJobs].Err, s.read[partElections].Err = errWait, errWait
	require.NotContains(t, sentence(s, attentionOf(s)), "leader")
	require.NotContains(t, sentence(s, attentionOf(s)), "late")
}

// stalledWith is a snapshot without a quorum, with jobs.
func stalledWith(jobs ...*view.Job) *snapshot {
	no := false
	return &snapshot{jobs: jobs, nodes: []view.Node{{Node: "n", ThisProcess: true, Votes: &no}}, turned: map[string]time.Time{"n": time.Now().Add(-5 * time.Minute)}}
}

// Without a quorum no tick is run: the page says of how many jobs one is due, and since when; not
// that it knows nothing of them.
func TestTicksWaitForAQuorum(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		now := time.Now()
		unread := func(name, schedule string, last, next time.Duration) *view.Job {
			r := rowOf(name, runsOf("ok"))
			r.Last.Tick = view.At(now.Add(last))
			r.Schedule, r.State, r.Error, r.Next = schedule, view.Unknown, "no quorum", view.At(now.Add(next))
			return r
		}
		due, each, later := unread("due", "0 3 * * *", -25*time.Hour, -time.Minute), unread("each", "* * * * * *", -time.Hour, time.Hour), unread("later", "0 3 * * *", -23*time.Hour, time.Hour)
		paused := unread("paused", "0 3 * * *", -25*time.Hour, -time.Minute)
		paused.State, paused.Paused = view.Paused, &view.Pause{By: "ann"}
		ordered := unread("ordered", "@every 1h", 0, -time.Minute)
		ordered.Last.Tick = view.Time{}
		named, named2, named3 := unread("named before", "0 3 * * *", -25*time.Hour, 23*time.Hour), unread("named and ran", "0 3 * * *", -time.Minute, -30*time.Second), unread("named too early", "0 3 * * *", -25*time.Hour, -30*time.Second)
		named.Named, named2.Named, named3.Named = due.Next, due.Next, view.At(now.Add(-time.Hour))
		const hourly = "0 * * * *"
		wasRead := unread("was read", "0 3 * * *", -25*time.Hour, -time.Minute)
		wasRead.Error, wasRead.State = "", view.OK
		s := stalledWith(due, each, later, paused, ordered, named, named2, named3, wasRead,
			unread("ran meanwhile", "* * * * *", -3*time.Minute, time.Minute), unread("hourly", hourly, -62*time.Minute, 58*time.Minute),
			unread("ran", "0 3 * * *", -time.Minute, -time.Minute),
			unread("left out, as it was paused", hourly, -5*time.Hour-30*time.Minute, 30*time.Minute),
			unread("was due before", "0 3 * * *", -25*time.Hour, -6*time.Minute),
			unread("has not ended", "every 1h from completion", -62*time.Minute, 10*time.Minute),
			unread("backfill", hourly, -500*time.Hour+10*time.Minute, 10*time.Minute))
		a := attentionOf(s)
		require.Equal(t, []string{"due", "each", "ordered", "named before", "named and ran", "named too early", "ran meanwhile", "hourly"}, view.All(a.due, func(r *view.Job) string { return r.Name }))
		todo := textIn(a.verdict(new(page), s))
		require.Contains(t, todo, "due8 jobs")
		require.NotContains(t, todo, " more.")
		require.WithinDuration(t, now.Add(-5*time.Minute-view.LookedAt), a.due[1].Due.Time, 3*time.Second)
		require.Contains(t, todo, "the first since "+a.due[1].Due.Format("15:04:05"))
		require.Contains(t, sentence(s, a), "nothing is granted since "+s.turned["n"].UTC().Format("15:04:05"))
		lanes := string((&overviewDoc{s: s, past: time.Hour}).hour(&page{Status: &statusDoc{needs: a}}))
		require.Regexp(t, `data-job="due" data-state="late"[^\n]*class="due"`, lanes)
		require.NotContains(t, lanes, `data-job="later" data-state="late"`)
		since, _, _ := because(s.waiting()(each), s)
		require.Contains(t, since, a.due[1].Due.Format("15:04:05"))
		_, why, _ := because(s.waiting()(due), s)
		require.Equal(t, "No lease is granted.", textIn(why))
		due.Window = view.Span(time.Hour)
		_, why, _ = because(s.waiting()(due), s)
		require.Equal(t, "No lease is granted. The tick is caught up until "+due.Next.Add(time.Hour).Format("15:04:05")+".", textIn(why))
		due.Window = view.Span(time.Second)
		_, why, _ = because(s.waiting()(due), s)
		require.Contains(t, textIn(why), "The tick was to be caught up until ")
		no := false
		for i := range 12 {
			n := view.Node{Node: fmt.Sprint("n", i), ThisProcess: true, Votes: &no, Error: fmt.Sprint("error ", i/2)}
			s.nodes, s.turned[n.Node] = append(s.nodes, n), s.turned["n"]
		}
		due.Failing, due.State = true, view.Failing
		require.Contains(t, textIn(attentionOf(s).verdict(new(page), s)), "And 4 nodes and 8 jobs more.")
		yes := true
		s.nodes = []view.Node{{Node: "n", ThisProcess: true, Votes: &yes}}
		require.Empty(t, attentionOf(s).due, "a quorum knows better")
	})
}

// A replica that has no quorum names the tick after the one that waits. So the tick that it had
// named before is kept.
func TestTickThatWasNamed(t *testing.T) {
	f, at := newFeed(nil, ""), time.Now()
	named := func(err error, next time.Duration) view.Time {
		r := f.row(t.Context(), admin.JobStatus{Name: "j", Err: err, Next: at.Add(next)}, at, false)
		f.show([]*view.Job{r}, time.Time{}, false)
		return r.Named
	}
	require.Zero(t, named(nil, time.Minute))
	require.Equal(t, view.At(at.Add(time.Minute)), named(errWait, time.Hour))
	require.Equal(t, view.At(at.Add(time.Minute)), named(errWait, 2*time.Hour))
	require.Zero(t, named(nil, time.Hour))
	require.Zero(t, f.row(t.Context(), admin.JobStatus{Name: "other", Err: errWait, Next: at}, at, false).Named)
}

// Jobs whose runs failed with the same text are one row. The types of errors say too little.
func TestSameErrorOfSeveralJobs(t *testing.T) {
	of := func(name, outcome, text string) *view.Job {
		r := rowOf(name, runsOf(outcome, outcome))
		r.Runs[0].Error, r.Runbook = text, "https://runbooks/"+name
		return r
	}
	const text = "redlock: dial tcp 10.2.3.4:5432: connect: connection refused"
	s := &snapshot{jobs: []*view.Job{of("a", "failed", text), of("b", "failed", "*errors.errorString"), of("c", "panicked", text), of("d", "failed", "*errors.errorString"), of("e", "lost", "of e"), of("f", "lost", "of f")}}
	rows := strings.Split(string(attentionOf(s).verdict(new(page), s)), "</li>")
	require.Len(t, rows, 5)
	require.Regexp(t, `name=a".*, <a href="job\?name=c".*since .*The last run of each failed: <q>dial tcp`, rows[0])
	require.Contains(t, textIn(markup(rows[1])), "b")
	require.Contains(t, rows[1], `<a href="https://runbooks/b" rel="noopener noreferrer">Runbook</a>`)
	require.Contains(t, textIn(markup(rows[2])), "d")
	require.Contains(t, textIn(markup(rows[3])), "e, f")
	require.Contains(t, textIn(markup(rows[3])), "Their last runs lost their leases.")
	for i := range 9 {
		s.jobs = append(s.jobs, of(fmt.Sprint("x", i), "failed", fmt.Sprint("error ", i)))
	}
	s.jobs[1].Runbook = "javascript:alert(1)"
	drawn := string(attentionOf(s).verdict(new(page), s))
	require.Contains(t, drawn, `<p>And <a href="jobs">8 jobs</a> more.</p>`)
	require.NotContains(t, drawn, "javascript:")
}

// A run of several attempts shows each, and the errors that are not the run's.
func TestAttempts(t *testing.T) {
	r := runsOf("failed")[0]
	at := func(second int) view.Time { return view.At(r.Began.Add(time.Duration(second) * time.Second)) }
	r.Attempt, r.Took, r.Error = 4, view.Span(30*time.Second), "no route"
	require.Empty(t, drawAttempts(&r))
	r.Attempts = []view.Attempt{{Began: at(0), Took: view.Span(2 * time.Second), Error: "timed <out>"}, {Began: at(10), Took: view.Span(time.Second), Error: "no route"}, {Began: at(29), Took: view.Span(time.Second), Error: "no route"}}
	drawn := string(drawAttempts(&r))
	require.Equal(t, 3, strings.Count(drawn, `<path class="failing"`))
	require.Contains(t, drawn, "<p>Attempt 2: <q>timed &lt;out&gt;</q></p>")
	require.NotContains(t, drawn, "no route")
	require.Contains(t, drawn, `aria-label="attempt 4: 1.0 s, failed"`)
	r.Outcome, r.Error, r.Attempts[2].Error = "ok", "", ""
	drawn = string(drawAttempts(&r))
	require.Equal(t, 1, strings.Count(drawn, `<path class="ok"`))
	require.Contains(t, drawn, "<p>Attempt 3: <q>no route</q></p>")
	r.Attempt, r.Attempts[2].Began, r.Began = 0, at(0), view.At(time.Now().AddDate(10, 0, 0))
	drawn = string(drawAttempts(&r))
	require.Contains(t, drawn, `"attempt 1: `)
	require.Less(t, strings.Count(drawn, "<line"), 60)
}

// An axis has a few marks, also if a run says that it was centuries ago.
func TestMarksOfAnAxis(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for _, long := range []time.Duration{10 * time.Second, time.Hour, 60 * 24 * time.Hour, 250 * 366 * 24 * time.Hour} {
		w := window{now.Add(-long), now, now, true}
		require.InDelta(t, 5, strings.Count(string(w.draw("", "")), "<line"), 5, "%v", long)
	}
}

// The chart shows an hour, or what the reader asks for.
func TestSpansOfTheChart(t *testing.T) {
	for asked, want := range map[string]string{"": "hour", "8h": "8 hours", "24h": "day", "7h": "hour", "x": "hour"} {
		is := new(Handler).overviewDoc(t.Context(), new(snapshot), httptest.NewRequest(http.MethodGet, "/?last="+asked, nil)).(*overviewDoc)
		drawn := string(is.hour(&page{Status: &statusDoc{needs: &attention{}, Read: map[string]readDoc{}}}))
		require.Contains(t, drawn, "The last "+want+"<", asked)
		require.Contains(t, drawn, `aria-current="true">`+want+"<", asked)
	}
}
