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

// details has what was read for a page, for a moment, so that all who look at it cost one read.
type details struct {
	f     *feed
	reads *store[detailOf, detail]
}

const (
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

// get reads something, or shares a read.
func (d *details) get(ctx context.Context, of detailOf) detail {
	read, mine := d.reads.begin(of, detail{}, func(r *made[detail]) bool { return !r.ended() || time.Now().Before(r.is.until) })
	switch {
	case read == nil:
		return d.fallBack(of, nil, errBusy)
	case mine && !d.f.start(func() { read.make(func(is *detail) { *is = d.read(of, read.was) }) }):
		return d.fallBack(of, read.was, errClosed)
	}
	end := time.NewTimer(patience)
	defer end.Stop()
	select {
	case <-read.done:
		return read.is
	case <-end.C:
	case <-ctx.Done():
	}
	return d.fallBack(of, read.was, errWait)
}

// fallBack is what is known of what could not be read.
func (d *details) fallBack(of detailOf, was *detail, err error) detail {
	is := detail{}
	if was != nil {
		is = *was
	}
	is.Err, is.Gone = err, false
	now, _ := d.f.peek()
	if row := now.find(of.name); row != nil && (is.Job == nil || row.Read.After(is.Job.Read.Time)) {
		is.Job = row
	}
	return is
}

func (d *details) read(of detailOf, was *detail) detail {
	began := time.Now()
	ctx, cancel := context.WithTimeout(d.f.down, detailMost)
	defer cancel()
	is := d.fallBack(of, was, nil)
	if of.runs {
		d.readRuns(ctx, &is, of.name)
	} else {
		d.readJob(ctx, &is, of.name)
	}
	is.until = time.Now().Add(max(detailFor, rest(time.Since(began), 10)))
	return is
}

func (d *details) readRuns(ctx context.Context, is *detail, job string) {
	var runs []admin.PastRun
	if job == "" {
		runs, is.Err = d.f.admin.FailedRuns(ctx, mostFailures)
	} else {
		runs, is.Err = d.f.admin.Runs(ctx, job, mostFailures)
	}
	if is.Err == nil {
		is.History = d.f.pasts(runs)
	}
}

func (d *details) readJob(ctx context.Context, is *detail, name string) {
	at := time.Now()
	status, err := d.f.admin.Job(ctx, name)
	switch {
	case errors.Is(err, admin.ErrNoJob):
		*is = detail{Gone: true}
	case err != nil:
		is.Err = err
	default:
		is.Job = d.f.jobs.row(ctx, status, at, true)
		if skips, err := d.f.admin.Skips(ctx, name, runsShown); err != nil {
			is.Err = err
		} else {
			is.Skips = view.Skips(skips)
		}
		d.f.jobs.show([]*view.Job{is.Job}, time.Time{}, false)
	}
}
