package web

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

const (
	// jobsEvery is how often all jobs are read, at most; a thousand of them less often.
	jobsEvery = 3 * time.Second
	// mostJobs are shown: whoever may write to the nodes may invent more.
	mostJobs = 5000
	// runsShown are the runs of a job in its row.
	runsShown = 20
	// runsKept are those of its page and its lane: all that nodes keep.
	runsKept = 200
	// mostDeep are the jobs of which all runs are read without that their page is looked at.
	mostDeep = 2 * mostLanes
	// publishEvery is how often rows are shown while more are read.
	publishEvery = 250 * time.Millisecond
	// mostTouched bounds the jobs that are read by themselves within publishEvery.
	mostTouched = 8
	// afterTick is how long after its tick a job is read, so that its run is seen.
	afterTick = 300 * time.Millisecond
	// askAgain is after how long a job is read again of which something is not known.
	askAgain = 2 * time.Second
)

// jobReader reads the jobs: all of them now and then, and in between those of which something is
// heard, or whose tick was due.
type jobReader struct {
	f *feed

	mu      sync.Mutex
	touched map[string]bool // guarded by mu; names; at most mostJobs
}

func newJobReader(f *feed) *jobReader { return &jobReader{f: f, touched: make(map[string]bool)} }

// find is the row of a job; nil for none.
func (s *snapshot) find(name string) *view.Job {
	if i, found := slices.BinarySearchFunc(s.jobs, name, func(j *view.Job, name string) int { return strings.Compare(j.Name, name) }); found {
		return s.jobs[i]
	}
	return nil
}

// touch has a job be read soon.
func (r *jobReader) touch(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.touched) < mostJobs {
		r.touched[name] = true
	}
}

// take returns some of the jobs that were touched.
func (r *jobReader) take() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.touched {
		if len(names) == mostTouched {
			break
		}
		names = append(names, name)
		delete(r.touched, name)
	}
	return names
}

// readAll reads all jobs. Rows are shown while others are read; those that were not read again stay
// with their age, unless all were read.
func (r *jobReader) readAll(ctx context.Context) (news bool, err error) {
	began, shown := time.Now(), time.Now()
	var rows []*view.Job
	tooMany := false
	for status, err := range r.f.admin.Jobs(ctx) {
		if err != nil {
			r.show(rows, time.Time{}, false)
			return true, err
		}
		if len(rows) == mostJobs {
			tooMany = true
			break
		}
		rows = append(rows, r.row(ctx, status, time.Now(), len(rows) < mostDeep))
		if time.Since(shown) > publishEvery {
			r.show(rows, time.Time{}, false)
			shown = time.Now()
		}
	}
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	r.show(rows, began, tooMany)
	return true, nil
}

// row adds the runs of a job to it: those that are known if no run has ended since. Deep is all
// that nodes keep: they are read once, and then the newest are put before them.
func (r *jobReader) row(ctx context.Context, status admin.JobStatus, at time.Time, deep bool) *view.Job {
	row := view.NewJob(status, at)
	now, _ := r.f.peek()
	var known []view.Past
	if was := now.find(status.Name); was != nil {
		known = was.Runs
	}
	enough := !deep || len(known) != 0 && len(known) != runsShown
	switch {
	case row.Last == nil:
	case enough && len(known) > 0 && known[0].Token == row.Last.Token && known[0].Began == row.Last.Began:
		row.Runs = known
	default:
		limit := runsShown
		if !enough {
			limit = runsKept
		}
		row.Runs = known
		if runs, err := r.f.admin.Runs(ctx, status.Name, limit); err == nil {
			row.Runs = joined(r.f.pasts(runs), known)
		}
	}
	if row.Last != nil {
		row.Last.TraceURL = traceLink(r.f.traceURL, row.Last.TraceID)
	}
	return row
}

// joined puts runs that were read before those that are known, unless some between them were not
// read.
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

// pasts are runs that have ended, with links to their traces.
func (f *feed) pasts(runs []admin.PastRun) []view.Past {
	all := view.Pasts(runs)
	for i := range all {
		all[i].TraceURL = traceLink(f.traceURL, all[i].TraceID)
	}
	return all
}

// show takes rows over into the snapshot. Rows that were read before whole, when all were read, are
// of jobs that are not there any more.
func (r *jobReader) show(rows []*view.Job, whole time.Time, tooMany bool) {
	r.f.publish([]part{partJobs}, func(s *snapshot) {
		merged := make(map[string]*view.Job, len(s.jobs)+len(rows))
		for _, row := range s.jobs {
			if !row.Read.Before(whole) {
				merged[row.Name] = row
			}
		}
		for _, row := range rows {
			if is := merged[row.Name]; is == nil || !row.Read.Before(is.Read.Time) {
				merged[row.Name] = row
			}
		}
		s.jobs = slices.SortedFunc(maps.Values(merged), func(x, y *view.Job) int { return strings.Compare(x.Name, y.Name) })
		if len(s.jobs) > mostJobs {
			s.jobs, tooMany = s.jobs[:mostJobs], true
		}
		if !whole.IsZero() || tooMany {
			s.tooMany = tooMany
		}
	})
}

// followTicks reads jobs by themselves: those that were touched, and those whose tick was due.
func (r *jobReader) followTicks(ctx context.Context) {
	ticker := time.NewTicker(publishEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		names := r.take()
		now, _ := r.f.peek()
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
		if len(names) > 0 {
			r.readSome(ctx, names)
		}
	}
}

// readSome reads jobs by their names.
func (r *jobReader) readSome(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	now, _ := r.f.peek()
	var (
		reads sync.WaitGroup
		mu    sync.Mutex
		rows  []*view.Job
	)
	for _, name := range names {
		reads.Go(func() {
			at := time.Now()
			status, err := r.f.admin.Job(ctx, name)
			if err != nil {
				return // the next read of all jobs says so, or finds that it is gone
			}
			row := r.row(ctx, status, at, len(now.jobs) <= mostDeep)
			mu.Lock()
			defer mu.Unlock()
			rows = append(rows, row)
		})
	}
	reads.Wait()
	if len(rows) > 0 {
		r.show(rows, time.Time{}, false)
	}
}
