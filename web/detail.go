package web

import (
	"context"
	"errors"
	"sync"
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
	*jobRow
	Skips   []view.Skip // nil if they were not read
	History []view.Past // likewise
	Err     error       // of the read; what was known before is there
	Gone    bool        // this read has found that no replica has it
}

// details has what was read for a page, for a moment, so that all who look at it cost one read.
type details struct {
	f *feed

	mu    sync.Mutex
	known map[detailOf]*detailRead // guarded by mu; at most mostDetails
}

// detailRead is a read.
type detailRead struct {
	began time.Time
	done  chan struct{}
	was   *detail   // what the read before has found; nil for none
	until time.Time // it is shared; set before done is closed
	is    detail    // likewise
}

const (
	mostDetails = 64
	// detailFor is for how long a read is shared, at least; one that takes long, nine times that.
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
	read, err := d.begin(of)
	if err != nil {
		return d.fallBack(of, nil, err)
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
	if row := now.find(of.name); row != nil && (is.jobRow == nil || row.At.After(is.At)) {
		is.jobRow = row
	}
	return is
}

// begin returns a read that goes on, or has just ended, or begins one.
func (d *details) begin(of detailOf) (*detailRead, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	read := d.known[of]
	var was *detail
	if read != nil {
		select {
		case <-read.done:
			if time.Now().Before(read.until) {
				return read, nil
			}
			is := read.is // without the read before
			was = &is
		default:
			return read, nil
		}
	}
	if read == nil && len(d.known) >= mostDetails && !d.forget() {
		return nil, errBusy
	}
	read = &detailRead{began: time.Now(), done: make(chan struct{}), was: was}
	if !d.f.start(func() { d.read(read, of) }) {
		return nil, errClosed
	}
	d.known[of] = read
	return read, nil
}

// forget makes room for another one: that which was read the longest ago, if none goes on.
func (d *details) forget() bool {
	var oldest detailOf
	found := false
	for of, read := range d.known {
		select {
		case <-read.done:
			if !found || read.until.Before(d.known[oldest].until) {
				oldest, found = of, true
			}
		default:
		}
	}
	delete(d.known, oldest)
	return found
}

func (d *details) read(read *detailRead, of detailOf) {
	ctx, cancel := context.WithTimeout(d.f.down, detailMost)
	defer cancel()
	is := d.fallBack(of, read.was, nil)
	if of.runs {
		d.readRuns(ctx, &is, of.name)
	} else {
		d.readJob(ctx, &is, of.name)
	}
	now := time.Now()
	read.is, read.until = is, now.Add(max(detailFor, 9*now.Sub(read.began)))
	close(read.done)
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
		is.jobRow = d.f.jobs.row(ctx, status, at, true)
		if skips, err := d.f.admin.Skips(ctx, name, runsShown); err != nil {
			is.Err = err
		} else {
			is.Skips = view.Skips(skips)
		}
		d.f.jobs.show([]*jobRow{is.jobRow}, time.Time{}, false)
	}
}
