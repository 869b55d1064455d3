package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// jobDetail is a job with all that is known of it.
type jobDetail struct {
	*jobRow
	Skips []view.Skip // nil if they were not read
	Err   error       // of the read; what was known before is there
	Gone  bool        // this read has found that no replica has it
}

// details has jobs that were read for their page, for a moment, so that all who look at one cost
// one read.
type details struct {
	f *feed

	mu    sync.Mutex
	known map[string]*detailRead // guarded by mu; at most mostDetails
}

// detailRead is a read of a job.
type detailRead struct {
	done  chan struct{}
	was   *jobDetail // what the read before has found; nil for none
	ended time.Time  // set before done is closed
	is    jobDetail  // likewise
}

const (
	mostDetails = 64
	// detailFor is for how long a read of a job is shared.
	detailFor = time.Second
	// detailMost is what one may take; a request waits patience for it.
	detailMost = 5 * time.Second
)

// errBusy means that too many jobs are read for their pages.
var errBusy = errors.New("web: too many jobs are looked at")

// errClosed means that the Handler was closed.
var errClosed = errors.New("web: closed")

// errWait means that a job is read, and no answer has come yet.
var errWait = errors.New("web: the nodes have not answered yet")

// get reads a job, or shares a read.
func (d *details) get(ctx context.Context, name string) jobDetail {
	read, err := d.begin(name)
	if err != nil {
		return d.fallBack(name, nil, err)
	}
	end := time.NewTimer(patience)
	defer end.Stop()
	select {
	case <-read.done:
		return read.is
	case <-end.C:
	case <-ctx.Done():
	}
	return d.fallBack(name, read.was, errWait)
}

// fallBack is what is known of a job that could not be read.
func (d *details) fallBack(name string, was *jobDetail, err error) jobDetail {
	is := jobDetail{Err: err}
	if was != nil {
		is.jobRow, is.Skips = was.jobRow, was.Skips
	}
	now, _ := d.f.peek()
	if row := now.find(name); row != nil && (is.jobRow == nil || row.At.After(is.At)) {
		is.jobRow = row
	}
	return is
}

// begin returns the read of a job that goes on, or has just ended, or begins one.
func (d *details) begin(name string) (*detailRead, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	read := d.known[name]
	var was *jobDetail
	if read != nil {
		select {
		case <-read.done:
			if time.Since(read.ended) < detailFor {
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
	read = &detailRead{done: make(chan struct{}), was: was}
	if !d.f.start(func() { d.read(read, name) }) {
		return nil, errClosed
	}
	d.known[name] = read
	return read, nil
}

// forget makes room for another job: that which was read the longest ago, if none goes on.
func (d *details) forget() bool {
	oldest, found := "", false
	for name, read := range d.known {
		select {
		case <-read.done:
			if !found || read.ended.Before(d.known[oldest].ended) {
				oldest, found = name, true
			}
		default:
		}
	}
	delete(d.known, oldest)
	return found
}

// read reads a job.
func (d *details) read(read *detailRead, name string) {
	ctx, cancel := context.WithTimeout(d.f.down, detailMost)
	defer cancel()
	is := d.fallBack(name, read.was, nil)
	at := time.Now()
	status, err := d.f.admin.Job(ctx, name)
	switch {
	case errors.Is(err, admin.ErrNoJob):
		is = jobDetail{Gone: true}
	case err != nil:
		is.Err = err
	default:
		is.jobRow = d.f.jobs.row(ctx, status, at)
		if skips, err := d.f.admin.Skips(ctx, name, runsShown); err != nil {
			is.Err = err
		} else {
			is.Skips = view.Skips(skips)
		}
		d.f.jobs.show([]*jobRow{is.jobRow}, time.Time{}, false)
	}
	read.is, read.ended = is, time.Now()
	close(read.done)
}
