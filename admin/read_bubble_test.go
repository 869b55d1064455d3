package admin_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

// told has a replica tell things.
func (r *replicas) told(t *testing.T, q *redlock.Quorum, cards []bulletin.Card, entries ...bulletin.Entry) {
	t.Helper()
	require.NoError(t, board.Of(q).Post(t.Context(), cards, entries...))
}

func jobCard(t *testing.T, j bulletin.Job) bulletin.Card {
	card, ok := j.Card()
	require.True(t, ok)
	return card
}

// knows has a replica tell of jobs.
func (r *replicas) knows(t *testing.T, q *redlock.Quorum, jobs ...string) {
	t.Helper()
	var cards []bulletin.Card
	for _, job := range jobs {
		cards = append(cards, jobCard(t, bulletin.Job{Job: job, Key: "job/" + job, Schedule: "* * * * *", By: "a"}))
	}
	r.told(t, q, cards)
}

func jobsOf(t *testing.T, c *admin.Client) (jobs []admin.JobStatus) {
	for j, err := range c.Jobs(t.Context()) {
		require.NoError(t, err)
		jobs = append(jobs, j)
	}
	return jobs
}

// Jobs of all names are read, a page at a time, in their order; those of schedulers with another
// prefix are not.
func TestJobsOfAllNames(t *testing.T) {
	besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
		names := []string{"a", "a b", "a{b}", "a\x00", "ä\x7f", "{", "}", "a/b", "job/a", `"'<script>`, strings.Repeat("é", 500)}
		for i := range 50 {
			names = append(names, fmt.Sprintf("x%03d", i))
		}
		r.knows(t, q, names...)
		r.told(t, q, []bulletin.Card{{Kind: bulletin.Jobs, ID: "job/foreign", Text: "no JSON", Lifetime: time.Hour}})
		var got []string
		for _, j := range jobsOf(t, c) {
			got = append(got, j.Name)
			require.Equal(t, 3, j.Sources)
			require.NoError(t, j.Err)
		}
		require.ElementsMatch(t, names, got)
		for _, name := range names {
			j, err := c.Job(t.Context(), name)
			require.NoError(t, err, "%q", name)
			require.Equal(t, name, j.Name)
		}
		for _, name := range []string{"x", "x0000", "zzz", "foreign"} {
			_, err := c.Job(t.Context(), name)
			require.ErrorIs(t, err, admin.ErrNoJob)
		}
		n := 0
		for range c.Jobs(t.Context()) {
			if n++; n == 3 {
				break
			}
		}
		require.Equal(t, 3, n)
	})
}

// A name that does not fit an entry of a journal is told as it is.
func TestRunsOfALongName(t *testing.T) {
	besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
		name := strings.Repeat("é", 500)
		key := admin.KeyPrefix + name
		l, err := q.TryAcquire(t.Context(), key, redlock.WithPayload("run"))
		require.NoError(t, err)
		run := bulletin.Run{Job: name, By: "a", Began: 1, Token: l.FencingToken()}
		process := bulletin.Process{Process: "p", Identity: "a", Running: []bulletin.Run{run}}.Card()
		run.Outcome, run.Token = bulletin.OK, 1
		skip, ok := bulletin.Skip{Job: name, Reason: "paused", By: "a"}.Entry(key, 1)
		require.True(t, ok)
		r.told(t, q, []bulletin.Card{process, jobCard(t, bulletin.Job{Job: name, Key: key, By: "a"})}, append(run.Entries(key), skip)...)

		p, err := c.Pause(t.Context(), admin.AllJobs, admin.PauseOptions{})
		require.NoError(t, err)
		require.Len(t, p.Running, 1)
		require.Equal(t, name, p.Running[0].Job)
		runs, err := c.Runs(t.Context(), name, 1)
		require.NoError(t, err)
		require.Equal(t, name, runs[0].Job)
		skips, err := c.Skips(t.Context(), name, 1)
		require.NoError(t, err)
		require.Equal(t, name, skips[0].Job)
	})
}

// In an outage a few jobs are waited for, and not each. What was a moment costs no more than that.
func TestJobsInAnOutage(t *testing.T) {
	for lasts, want := range map[time.Duration][]int{time.Hour: {30, 30}, time.Second: {1, 3}} {
		besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
			for i := range 30 {
				r.knows(t, q, fmt.Sprint(i))
			}
			for i := range 2 {
				r.fleet.Node(i).SetDelay(time.Hour)
				time.AfterFunc(lasts, func() { r.fleet.Node(i).SetDelay(0) })
			}
			began, unknown := time.Now(), 0
			for _, j := range jobsOf(t, c) {
				if j.Err != nil {
					require.ErrorIs(t, j.Err, redlock.ErrNoQuorum)
					unknown++
				}
			}
			require.Less(t, time.Since(began), 10*time.Second)
			require.GreaterOrEqual(t, unknown, want[0])
			require.LessOrEqual(t, unknown, want[1])
		})
	}
}

// runUntilVotes waits until a Quorum may tell anything.
func runUntilVotes(t *testing.T, q *redlock.Quorum) {
	t.Helper()
	for _, n := range q.Nodes(t.Context()) {
		for !n.Votes {
			time.Sleep(time.Second)
			n = q.Nodes(t.Context())[0]
		}
	}
}

// A job is late if its next tick has passed and nothing is known of it; not while it runs, is
// paused, or was run.
func TestLateJob(t *testing.T) {
	besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
		next := time.Now().Add(time.Minute)
		r.told(t, q, []bulletin.Card{jobCard(t, bulletin.Job{Job: "job", Key: "job/job", Next: next.UnixMilli(), By: "a"})})
		is := func() admin.JobStatus {
			j, err := c.Job(t.Context(), "job")
			require.NoError(t, err)
			return j
		}
		require.Equal(t, next.UnixMilli(), is().Next.UnixMilli())
		require.False(t, is().Late)
		time.Sleep(70 * time.Second)
		require.False(t, is().Late, "replicas have not had time to say so")
		time.Sleep(time.Minute)
		require.True(t, is().Late)
		l, err := q.TryAcquire(t.Context(), "job/job", redlock.WithPayload(joblog.Brief))
		require.NoError(t, err)
		require.Nil(t, is().Running, "its holder has only something to write")
		require.NoError(t, l.Release(t.Context()))
		l, err = q.TryAcquire(t.Context(), "job/job")
		require.NoError(t, err)
		require.False(t, is().Late)
		require.Equal(t, "a", is().Running.Replica)
		require.Zero(t, is().Running.Tick, "the run is not granted yet")
		require.NoError(t, l.Release(t.Context()))
		require.True(t, is().Late)
		_, err = c.Pause(t.Context(), admin.AllJobs, admin.PauseOptions{})
		require.NoError(t, err)
		require.False(t, is().Late)
		require.Equal(t, admin.AllJobs, is().Paused.Target)
		require.NoError(t, c.Resume(t.Context(), admin.AllJobs, ""))
		require.True(t, is().Late)
		began := time.Now()
		token := r.begins(t, q, joblog.Record{Run: joblog.Run{Tick: next, Attempt: 2, Why: joblog.Again, Began: began}}, func() {
			require.Equal(t, admin.Run{Job: "job", Replica: "a", Tick: next.UTC(), Began: began.UTC(), Attempt: 2, Why: "again",
				FencingToken: is().Running.FencingToken, LeaseLeft: is().Running.LeaseLeft}, *is().Running)
		})
		run, ok := bulletin.Run{Job: "job", Tick: next.UnixMilli(), By: "a", Began: began.UnixMilli(), Token: token, Outcome: bulletin.Failed, Error: "x", Took: 1500, Why: "again", Report: "3 rows"}.Entry("job/job")
		require.True(t, ok)
		r.told(t, q, nil, run)
		j := is()
		require.False(t, j.Late)
		require.Zero(t, j.Next, "what comes next is not said")
		require.Equal(t, admin.PastRun{Job: "job", Replica: "a", Tick: j.Last.Tick, Began: time.UnixMilli(began.UnixMilli()), Took: 1500 * time.Microsecond,
			Outcome: admin.OutcomeFailed, Error: "x", Why: "again", Report: "3 rows", FencingToken: token, Sources: 3}, *j.Last)
		time.Sleep(bulletin.ProcessLifetime - time.Second)
		require.False(t, is().Late, "who ran it has had no time to say so")
		time.Sleep(2 * time.Second)
		require.True(t, is().Late, "who ran it has died before it said what comes next")
		require.Zero(t, is().Next)
	})
}

// A job of which no node said how its last run had ended, as to a user who lost the right to ask,
// was as one that never ran: what failed was well.
func TestLastRunIsNotKnown(t *testing.T) {
	besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
		r.told(t, q, []bulletin.Card{jobCard(t, bulletin.Job{Job: "job", Key: "job/job", Next: time.Now().UnixMilli(), By: "a"})})
		for i := range 3 {
			peer := r.peer(t, i)
			require.NoError(t, peer.Do(t.Context(), peer.B().Set().Key("tenure:{}:journal:runs/job/job").Value("x").Build()).Error())
		}
		time.Sleep(time.Minute)
		j := jobsOf(t, c)[0]
		require.Error(t, j.Err)
		require.True(t, j.Late, "which is known all the same")
	})
}

// begins has a replica begin a run, and end it after what is done meanwhile.
func (r *replicas) begins(t *testing.T, q *redlock.Quorum, rec joblog.Record, meanwhile func()) (token uint64) {
	t.Helper()
	l, err := q.TryAcquire(t.Context(), "job/job")
	require.NoError(t, err)
	turn, _, err := register.Of(q, "job/job", time.Hour).Begin(t.Context(), l)
	require.NoError(t, err)
	write := func() {
		value, err := rec.Encode()
		require.NoError(t, err)
		require.NoError(t, turn.Write(t.Context(), value))
	}
	rec.Run.Token = l.FencingToken()
	write()
	meanwhile()
	rec.Run.Ended, rec.Run.Outcome, rec.Cursor = time.Now(), joblog.Failed, rec.Run.Tick
	write()
	require.NoError(t, l.Release(t.Context()))
	return l.FencingToken()
}

// Terms are told with how they ended and how long nobody led. One whose end nobody told ended when
// the next leader found its lease expired, if that had waited.
func TestTerms(t *testing.T) {
	besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
		at := time.Now().UnixMilli()
		for _, term := range []bulletin.Term{
			{Term: 5, By: "a", Event: "elected", At: at}, {Term: 5, By: "a", Event: "resigned", Reason: "shutdown", At: at + 1000},
			{Term: 7, By: "b", Event: "elected", At: at + 1005}, // it was killed
			{Term: 9, By: "a", Event: "elected", At: at + 9000, Vacant: 20}, {Term: 9, By: "a", Event: "lost", Reason: "deadline", At: at + 9500},
			{Term: 12, By: "b", Event: "elected", At: at + 9400},               // its clock is behind, and it was killed
			{Term: 15, By: "a", Event: "elected", At: at + 9600, Vacant: 5000}, // as far as it knew
			{Term: 17, By: "b", Event: "elected", At: -1, Vacant: 5000},
		} {
			e, ok := term.Entry("jobs")
			require.True(t, ok)
			r.told(t, q, nil, e)
			time.Sleep(time.Millisecond)
		}
		e, err := c.Election(t.Context(), "jobs")
		require.NoError(t, err)
		require.Nil(t, e.Leader)
		require.NoError(t, e.Err)
		require.Len(t, e.Terms, 6)
		var told []string
		for _, term := range e.Terms {
			told = append(told, fmt.Sprintf("%d %s %s %s %v %v", term.Number, term.Identity, term.How, term.Reason, term.Gap, !term.Ended.IsZero()))
		}
		require.Equal(t, []string{"17 b   0s false", "15 a lost cut_short 0s false", "12 b lost cut_short 0s false", "9 a lost deadline 20ms true", "7 b lost cut_short 5ms true", "5 a resigned shutdown 0s true"}, told)
	})
}

// The term of a leader that was killed ends when its lease expired, as its successor found it.
func TestTermOfALeaderThatWasKilled(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		a, b, c := r.quorum(t, "a"), r.quorum(t, "b"), r.client(t)
		runUntilVotes(t, a)
		l, err := a.TryAcquire(t.Context(), elector.KeyPrefix+"jobs")
		require.NoError(t, err)
		began, ok := bulletin.Term{Term: l.FencingToken(), By: "a", Event: bulletin.Elected, At: time.Now().UnixMilli()}.Entry("jobs")
		require.True(t, ok)
		r.told(t, a, nil, began)
		e, err := elector.New(b, "jobs", elector.WithLogger(r.quiet))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		defer runs.Wait()
		defer cancel()
		runs.Go(func() { _ = e.Run(ctx, nil) })
		time.Sleep(time.Minute)
		l.StopExtending()
		time.Sleep(time.Minute)
		seen, err := c.Election(t.Context(), "jobs")
		require.NoError(t, err)
		require.Len(t, seen.Terms, 2)
		killed := seen.Terms[1]
		require.Equal(t, "lost "+admin.TermCutShort, killed.How+" "+killed.Reason)
		require.WithinDuration(t, l.Deadline(), killed.Ended, 200*time.Millisecond)
		require.Equal(t, seen.Terms[0].Began.Sub(killed.Ended), seen.Terms[0].Gap)
		require.Positive(t, seen.Terms[0].Gap)
	})
}

// How replicas see nodes is beside how this process does; what only they name is there too.
func TestNodesAsReplicasSeeThem(t *testing.T) {
	besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
		defer board.Of(q).Report(func() board.Report { return board.Report{} })()
		text := `{"v":2,"identity":"b","news":{},"nodes":[{"node":"elsewhere:1","votes":false,"why":"connection","was":[{"votes":true,"since":1000}]},{"node":"` + c.Nodes(t.Context())[0].Node + `","votes":true}]}`
		r.told(t, q, []bulletin.Card{{Kind: bulletin.Processes, ID: "b", Text: text, Lifetime: time.Minute}})
		time.Sleep(time.Second)
		nodes := c.Nodes(t.Context())
		require.Len(t, nodes, 4)
		require.True(t, nodes[0].Votes)
		require.Equal(t, time.Second, nodes[0].SeenBy[1].Age)
		require.WithinDuration(t, time.Now(), nodes[0].SeenBy[0].Since, 2*time.Second)
		for _, n := range nodes {
			for i := range n.SeenBy {
				n.SeenBy[i].Age, n.SeenBy[i].Since = 0, time.Time{}
			}
		}
		require.Equal(t, []admin.Seen{{Replica: "a", Node: nodes[0].Node, Votes: true}, {Replica: "b", Node: nodes[0].Node, Votes: true}}, nodes[0].SeenBy)
		require.Len(t, nodes[1].SeenBy, 1)
		require.Equal(t, "elsewhere:1", nodes[3].Node)
		require.Equal(t, []admin.Seen{{Replica: "b", Node: "elsewhere:1", Why: "connection", Was: []admin.Turn{{Votes: true, Since: time.Unix(1, 0)}}}}, nodes[3].SeenBy)
		require.False(t, nodes[3].Reachable)
	})
}

// At most so many runs and skips are told as were asked for. Of none, one was.
func TestJournalsHaveALimit(t *testing.T) {
	besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
		for token := range uint64(3) {
			run, ok := bulletin.Run{Job: "job", By: "a", Began: 1e12 + int64(token), Token: token + 1, Outcome: bulletin.OK}.Entry("job/job")
			require.True(t, ok)
			skip, ok := bulletin.Skip{Job: "job", By: "a", Tick: 1e12 + int64(token), Reason: fmt.Sprint("reason", token)}.Entry("job/job", 1)
			require.True(t, ok)
			r.told(t, q, nil, run, skip)
		}
		for limit, want := range map[int]int{-1: 0, 0: 0, 1: 1, 2: 2, 100: 3} {
			runs, err := c.Runs(t.Context(), "job", limit)
			require.NoError(t, err)
			require.Len(t, runs, want, "limit %d", limit)
			skips, err := c.Skips(t.Context(), "job", limit)
			require.NoError(t, err)
			require.Len(t, skips, want, "limit %d", limit)
		}
		_, err := c.Runs(t.Context(), "", 0)
		require.ErrorAs(t, err, new(*admin.OptionError))
	})
}

// Candidates are named as they lead. They were named for their processes, and a leader with a name
// of its own was not among them.
func TestLeaderIsACandidate(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		c := r.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		defer runs.Wait()
		defer cancel()
		stand := func(q *redlock.Quorum, opts ...elector.Option) string {
			e, err := elector.New(q, "jobs", append(opts, elector.WithLogger(r.quiet))...)
			require.NoError(t, err)
			runs.Go(func() {
				_ = e.Run(ctx, func(ctx context.Context, _ *elector.Term) error {
					<-ctx.Done()
					return nil
				})
			})
			time.Sleep(30 * time.Second)
			return e.Identity()
		}
		candidates := func() []string {
			all, err := c.Elections(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.NotNil(t, all[0].Leader)
			require.Contains(t, all[0].Candidates, all[0].Leader.Identity)
			return all[0].Candidates
		}
		require.Equal(t, "named", stand(r.quorum(t, "z"), elector.WithIdentity("named")))
		require.Equal(t, []string{"named"}, candidates())
		unnamed, err := redlock.Open(r.fleet.URLs(), redlock.WithClientOption(r.fleet.ClientOption), redlock.WithLogger(r.quiet), redlock.WithTTL(4*time.Second))
		require.NoError(t, err)
		defer func() { require.NoError(t, unnamed.Close()) }()
		defer runs.Wait()
		defer cancel()
		numbered := stand(unnamed)
		require.NotEqual(t, unnamed.Identity(), numbered)
		require.Equal(t, "a", stand(r.quorum(t, "a")), "its process is named, and so is it")
		require.ElementsMatch(t, []string{"a", "named", numbered}, candidates())
		replicas, err := c.Replicas(t.Context())
		require.NoError(t, err)
		require.Equal(t, admin.Candidates(replicas)["jobs"], candidates())
	})
}

// Nodes that keep nothing on disk and are restarted, all or one after the other, forget what a job
// is: none was known until it ran, or for a quarter of an hour.
func TestJobsThatNodesForgot(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		r.schedules(t, "a", "leap", gocron.CronJob("0 3 29 2 *", false), func() {})
		c := r.client(t)
		time.Sleep(time.Minute)
		require.Len(t, jobsOf(t, c), 1)
		for i := range 3 {
			require.NoError(t, r.fleet.Node(i).Restart(false))
			time.Sleep(20 * time.Second)
		}
		time.Sleep(30 * time.Second)
		require.Len(t, jobsOf(t, c), 1)
	})
}
