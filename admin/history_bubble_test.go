package admin_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

// Nodes keep 200 runs of a job, and the last 50 that failed, however many ended well since.
// Failures of all jobs are read together.
func TestHistory(t *testing.T) {
	besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
		ran := func(job string, token int, outcome string) {
			r.told(t, q, nil, bulletin.Run{Job: job, By: "a", Began: int64(1e12 + token), Token: uint64(token), Outcome: outcome}.Entries("job/"+job)...)
		}
		said := func(runs []admin.PastRun, err error) (all []string) {
			require.NoError(t, err)
			for _, r := range runs {
				all = append(all, fmt.Sprintf("%s %d %s", r.Job, r.FencingToken, r.Outcome))
			}
			return all
		}
		for i := range 12 { // more than one command reads
			job := fmt.Sprint("quiet", i)
			r.knows(t, q, job)
			ran(job, 50+i, bulletin.OK)
		}
		r.knows(t, q, "often")
		for token := 1; token <= 60; token++ {
			ran("often", token, bulletin.Failed)
		}
		ran("quiet9", 90, bulletin.CutShort)
		for token := 101; token <= 310; token++ {
			ran("often", token, bulletin.OK)
		}
		all := said(c.Runs(t.Context(), "often", 1000))
		require.Len(t, all, 250)
		require.Equal(t, []string{"often 310 ok", "often 111 ok", "often 60 failed", "often 11 failed"}, []string{all[0], all[199], all[200], all[249]})
		require.Equal(t, all[:201], said(c.Runs(t.Context(), "often", 201)))
		require.Equal(t, all[:20], said(c.Runs(t.Context(), "often", 20)))

		failed := said(c.FailedRuns(t.Context(), 1000))
		require.Len(t, failed, 51)
		require.Equal(t, []string{"quiet9 90 cut_short", "often 60 failed"}, failed[:2])
		require.Equal(t, failed[:2], said(c.FailedRuns(t.Context(), 2)))
		require.Empty(t, said(c.FailedRuns(t.Context(), 0)))
	})
}

// The attempts of a run have their own errors, or that of the run. The description of a job has
// what the page links to.
func TestAttemptsOfARun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		q, c := r.quorum(t, "a"), r.client(t)
		runUntilVotes(t, q)
		run := bulletin.Run{By: "a", Began: 1e12, Token: 1, Outcome: bulletin.Failed, Error: "no route", Attempt: 2, Attempts: []bulletin.Attempt{{Began: 1e12, Took: 5, Error: "timeout"}, {Began: 1e12 + 9}}}
		r.told(t, q, []bulletin.Card{jobCard(t, bulletin.Job{Job: "job", Key: "job/job", By: "a", Window: 2000, Runbook: "https://x"})}, run.Entries("job/job")...)
		runs, err := c.Runs(t.Context(), "job", 1)
		require.NoError(t, err)
		require.Len(t, runs[0].Attempts, 2)
		first, second := runs[0].Attempts[0], runs[0].Attempts[1]
		require.Equal(t, []any{int64(1e12), 5 * time.Microsecond, "timeout"}, []any{first.Began.UnixMilli(), first.Took, first.Error})
		require.Equal(t, []any{int64(1e12 + 9), "no route"}, []any{second.Began.UnixMilli(), second.Error})
		j, err := c.Job(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, []any{2 * time.Second, "https://x"}, []any{j.Window, j.Runbook})
	})
}

// A run that its replica tells, and that another one has seen to be cut short, is one run: it is as
// its replica says.
func TestRunIsThereOnce(t *testing.T) {
	besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
		r.knows(t, q, "job")
		for i, outcomes := range [][]string{{bulletin.Lost, bulletin.CutShort}, {bulletin.CutShort, bulletin.Lost}} {
			for k, outcome := range outcomes {
				entries := bulletin.Run{Job: "job", By: "a", Began: 1e12, Token: uint64(i + 1), Outcome: outcome}.Entries("job/job")
				for n := range entries {
					entries[n].At = time.UnixMilli(int64(1e12 + 2*i + k))
				}
				r.told(t, q, nil, entries...)
			}
		}
		for _, limit := range []int{1, 9} {
			runs, err := c.Runs(t.Context(), "job", limit)
			require.NoError(t, err)
			failed, err := c.FailedRuns(t.Context(), limit)
			require.NoError(t, err)
			require.Len(t, runs, min(limit, 2))
			for _, r := range slices.Concat(runs, failed) {
				require.Equal(t, admin.OutcomeLost, r.Outcome)
			}
		}
	})
}

// A replica that was frozen tells of the run that it lost when it goes on, behind those that others
// have run since: the job was said to be failing until its next run ended.
func TestRunThatIsToldLate(t *testing.T) {
	besideAReplica(t, func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client) {
		r.knows(t, q, "job")
		for i, run := range []bulletin.Run{{Token: 1, Outcome: bulletin.OK}, {Token: 3, Outcome: bulletin.OK}, {Token: 4, Outcome: bulletin.OK}, {Token: 2, Outcome: bulletin.Lost}} {
			run.Job, run.By, run.Began = "job", "a", int64(1e12+run.Token)
			entries := run.Entries("job/job")
			for n := range entries {
				entries[n].At = time.UnixMilli(int64(1e12 + i))
			}
			r.told(t, q, nil, entries...)
		}
		for limit := range 5 {
			runs, err := c.Runs(t.Context(), "job", limit)
			require.NoError(t, err)
			var tokens []uint64
			for _, run := range runs {
				tokens = append(tokens, run.FencingToken)
			}
			require.Equal(t, []uint64{4, 3, 2, 1}[:limit], append([]uint64{}, tokens...))
		}
		is, err := c.Job(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, admin.OutcomeOK, is.Last.Outcome)
	})
}
