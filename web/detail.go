package web

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// detailOf names a detail: a job, the past runs of a job, or, without a name, the failed runs of
// all jobs.
type detailOf struct {
	name string
	runs bool
}

// detail is what was read about a job, or a list of past runs.
type detail struct {
	Job     *view.Job   // nil if not known
	Skips   []view.Skip // nil if not read
	History []view.Past // nil if not read
	Err     error       // error of the read; then the other fields are older, and empty with admin.ErrNoJob

	until time.Time // the end of the time in which requests share it
}

const (
	// mostDetails bounds the details that are kept. All requests for one share a read.
	mostDetails = 64
	// detailFor is the least time for which a read is shared. A slow read is shared for as long as
	// its rest.
	detailFor = time.Second
	// detailMost bounds a read. A request waits only for patience.
	detailMost = 5 * time.Second
)

// errBusy means that too many details are being read.
var errBusy = errors.New("web: too many jobs are looked at")

// errClosed means that the Handler was closed.
var errClosed = errors.New("web: closed")

// errWait means that the nodes have not answered yet.
var errWait = errors.New("web: the nodes have not answered yet")

// detail reads a detail, or shares a read of it.
func (f *feed) detail(ctx context.Context, of detailOf) detail {
	read, mine := f.details.begin(of, detail{}, func(r *made[detail]) bool { return !r.ended() || time.Now().Before(r.is.until) })
	switch {
	case read == nil:
		return f.fallBack(of, nil, errBusy)
	case mine && !f.start(func() { read.make(func(is *detail) { *is = f.readDetail(of, read.was) }) }):
		return f.fallBack(of, read.was, errClosed)
	}
	select {
	case <-read.done:
		return read.is
	case <-time.After(patience):
	case <-ctx.Done():
	}
	return f.fallBack(of, read.was, errWait)
}

// fallBack returns what is known of a detail without a read, with the error that explains it.
func (f *feed) fallBack(of detailOf, was *detail, err error) (is detail) {
	if was != nil {
		is = *was
	}
	is.Err = err
	now, _ := f.peek()
	if row := now.find(of.name); row != nil && (is.Job == nil || row.Read.After(is.Job.Read.Time)) {
		is.Job = row
	}
	return is
}

func (f *feed) readDetail(of detailOf, was *detail) detail {
	began := time.Now()
	ctx, cancel := context.WithTimeout(f.down, detailMost)
	defer cancel()
	is := f.fallBack(of, was, nil)
	var runs []admin.PastRun
	var skips []admin.Skip
	switch {
	case of.name == "":
		runs, is.Err = f.admin.FailedRuns(ctx, mostFailures)
	case of.runs:
		runs, is.Err = f.admin.Runs(ctx, of.name, mostFailures)
	default:
		var job *view.Job
		if job, is.Err = f.readJob(ctx, of.name, true); is.Err == nil {
			is.Job = job
			skips, is.Err = f.admin.Skips(ctx, of.name, runsShown)
		}
	}
	switch {
	case errors.Is(is.Err, admin.ErrNoJob):
		is = detail{Err: is.Err}
	case is.Err != nil:
	case of.runs:
		is.History = f.pasts(runs)
	default:
		is.Skips = view.All(skips, view.NewSkip)
	}
	is.until = time.Now().Add(max(detailFor, rest(time.Since(began), 10)))
	return is
}
