package web

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// detailOf says what is read: a job, or the runs of one that have ended, or with no name those of
// all that failed.
type detailOf struct {
	name string
	runs bool
}

// detail is what is known of a job, or runs.
type detail struct {
	Job     *view.Job   // nil if it is not known
	Skips   []view.Skip // nil if they were not read
	History []view.Past // likewise
	Err     error       // of the read; what was known before is there
	Gone    bool        // this read has found that no replica has it

	until time.Time // it is shared
}

const (
	// mostDetails are known, for a moment: all who look at one cost one read.
	mostDetails = 64
	// detailFor is for how long a read is shared, at least; one that takes long, for a rest.
	detailFor = time.Second
	// detailMost is what one may take; a request waits patience for it.
	detailMost = 5 * time.Second
)

// errBusy means that too much is read for pages.
var errBusy = errors.New("web: too many jobs are looked at")

// errClosed means that the Handler was closed.
var errClosed = errors.New("web: closed")

// errWait means that no answer has come yet.
var errWait = errors.New("web: the nodes have not answered yet")

// detail reads something, or shares a read.
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

// fallBack is what is known of what could not be read.
func (f *feed) fallBack(of detailOf, was *detail, err error) (is detail) {
	if was != nil {
		is = *was
	}
	is.Err, is.Gone = err, false
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
		is = detail{Gone: true}
	case is.Err != nil:
	case of.runs:
		is.History = f.pasts(runs)
	default:
		is.Skips = view.Skips(skips)
	}
	is.until = time.Now().Add(max(detailFor, rest(time.Since(began), 10)))
	return is
}
