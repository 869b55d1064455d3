package web

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/admin"
	clocks "github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/view"
)

const (
	// jobsEvery is the time between two reads of all jobs. Many jobs are read less often.
	jobsEvery = 3 * time.Second
	// mostJobs bounds the jobs that are shown, because any writer of the nodes may invent more.
	mostJobs = 5000
	// runsShown is how many runs of a job its row shows.
	runsShown = 20
	// runsKept is how many runs of a job its page and its lane show: all that nodes keep.
	runsKept = 200
	// mostDeep is how many jobs have all their runs read, even if their pages are not looked at.
	mostDeep = 2 * mostLanes
	// publishEvery is how often new rows are shown during a read of all jobs.
	publishEvery = 250 * time.Millisecond
	// mostTouched bounds the single jobs that are read in one publishEvery.
	mostTouched = 8
	// afterTick is how long after its tick a job is read again, so that the read finds the run.
	afterTick = 300 * time.Millisecond
	// askAgain is how long after a failed read a job is read again.
	askAgain = 2 * time.Second
)

// find returns the row of a job, or nil.
func (s *snapshot) find(name string) *view.Job {
	if i, found := slices.BinarySearchFunc(s.jobs, name, jobByName); found {
		return s.jobs[i]
	}
	return nil
}

func jobByName(j *view.Job, name string) int { return strings.Compare(j.Name, name) }

// touch has a job read soon.
func (f *feed) touch(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.touched) < mostJobs {
		f.touched[name] = true
	}
}

// take removes and returns some of the touched jobs.
func (f *feed) take() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.touched {
		if len(names) == mostTouched {
			break
		}
		names = append(names, name)
		delete(f.touched, name)
	}
	return names
}

// readJobs reads all jobs, and shows rows while it reads others. Earlier rows stay, with their age,
// until their jobs are read. When all jobs are read, the earlier rows that are left are removed.
func (f *feed) readJobs(ctx context.Context) (news bool, err error) {
	began, shown := time.Now(), time.Now()
	var rows []*view.Job
	tooMany := false
	for status, err := range f.admin.Jobs(ctx) {
		if err != nil {
			f.show(rows, time.Time{}, false)
			return true, err
		}
		if tooMany = len(rows) == mostJobs; tooMany {
			break
		}
		rows = append(rows, f.row(ctx, status, time.Now(), len(rows) < mostDeep))
		if time.Since(shown) > publishEvery {
			f.show(rows, time.Time{}, false)
			shown = time.Now()
		}
	}
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	f.show(rows, began, tooMany)
	return true, nil
}

// readJob reads one job.
func (f *feed) readJob(ctx context.Context, name string, deep bool) (*view.Job, error) {
	at := time.Now()
	status, err := f.admin.Job(ctx, name)
	if err != nil {
		return nil, err
	}
	row := f.row(ctx, status, at, deep)
	f.show([]*view.Job{row}, time.Time{}, false)
	return row, nil
}

// row makes the row of a job with its runs. If no run has ended since the last read, the known runs
// are kept. If deep is true the row has all runs that nodes keep: these are read once, and later
// only the newest are read and put before them.
func (f *feed) row(ctx context.Context, status admin.JobStatus, at time.Time, deep bool) *view.Job {
	row := view.NewJob(status, at)
	last := row.Last
	now, _ := f.peek()
	was := now.find(status.Name)
	if was != nil && row.Error != "" {
		row.Named = choice(was.Error == "", was.Next, was.Named)
	}
	if last == nil {
		return row
	}
	last.TraceURL = traceLink(f.traceURL, last.TraceID)
	if was != nil {
		row.Runs = was.Runs
	}
	known, limit := row.Runs, runsShown
	if deep && (len(known) == 0 || len(known) == runsShown) {
		limit = runsKept
	} else if len(known) > 0 && known[0].Token == last.Token && known[0].Began == last.Began {
		return row
	}
	if runs, err := f.admin.Runs(ctx, status.Name, limit); err == nil {
		row.Runs = joined(f.pasts(runs), known)
	}
	return row
}

// joined puts newly read runs before the known ones. If the read runs are all that there are, or if
// runs between the two are missing, it returns only the read runs.
func joined(read, known []view.Past) []view.Past {
	if len(read) == 0 {
		return read
	}
	oldest := read[len(read)-1].Token
	at := slices.IndexFunc(known, func(r view.Past) bool { return r.Token == oldest })
	if len(read) < runsShown || at < 0 {
		return read
	}
	all := append(slices.Clip(read), known[at+1:]...)
	return all[:min(len(all), runsKept)]
}

// pasts returns past runs with links to their traces.
func (f *feed) pasts(runs []admin.PastRun) []view.Past {
	all := view.All(runs, view.NewPast)
	for i := range all {
		all[i].TraceURL = traceLink(f.traceURL, all[i].TraceID)
	}
	return all
}

// show puts rows into the snapshot. A non-zero whole is the beginning of a read of all jobs: then
// rows that were read before it are removed, because their jobs are gone.
func (f *feed) show(rows []*view.Job, whole time.Time, tooMany bool) {
	f.publish(func(s *snapshot) {
		s.told[partJobs] = s.seq
		s.jobs = slices.DeleteFunc(slices.Clone(s.jobs), func(row *view.Job) bool { return row.Read.Before(whole) })
		for _, row := range rows {
			at, found := slices.BinarySearchFunc(s.jobs, row.Name, jobByName)
			if !found {
				s.jobs = slices.Insert(s.jobs, at, row)
			} else if !row.Read.Before(s.jobs[at].Read.Time) {
				s.jobs[at] = row
			}
		}
		if len(s.jobs) > mostJobs {
			s.jobs, tooMany = s.jobs[:mostJobs], true
		}
		if !whole.IsZero() || tooMany {
			s.tooMany = tooMany
		}
	})
}

// followTicks reads single jobs: touched jobs, jobs whose tick was due, and jobs whose last read
// failed.
func (f *feed) followTicks(ctx context.Context) {
	for clocks.Sleep(ctx, publishEvery) == nil {
		names := f.take()
		now, _ := f.peek()
		due := time.Now().Add(-afterTick)
		for _, row := range now.jobs {
			if len(names) == mostTouched {
				break
			}
			ticked := !row.Next.IsZero() && row.Next.Before(due) && row.Read.Before(row.Next.Add(afterTick))
			unknown := row.Error != "" && time.Since(row.Read.Time) > askAgain
			if (ticked || unknown) && !slices.Contains(names, row.Name) {
				names = append(names, row.Name)
			}
		}
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		var reads sync.WaitGroup
		for _, name := range names {
			reads.Go(func() { // the next read of all reports an error, or removes the job
				_, _ = f.readJob(within, name, len(now.jobs) <= mostDeep)
			})
		}
		reads.Wait()
		cancel()
	}
}
