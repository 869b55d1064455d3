package scheduler

import (
	"context"
	"sync"

	"github.com/tenure-dev/tenure/internal/register"
)

// mostTogether is how many jobs are read with one command a node.
const mostTogether = 32

// reader reads the records and pauses of jobs. What is asked for while a read is under way is read
// together, so that thousands of jobs that wake at once cost a few commands.
type reader struct {
	mu      sync.Mutex
	reading bool       // guarded by mu
	waiting []*reading // guarded by mu
}

// reading is a job's place in a read.
type reading struct {
	job    *job
	ctx    context.Context
	came   chan struct{} // closed when the rest is set
	states []register.State
	err    error
}

// read returns the states of a job's record, its pause and the pause of all.
func (r *reader) read(ctx context.Context, j *job) ([]register.State, error) {
	own := &reading{job: j, ctx: ctx, came: make(chan struct{})}
	r.mu.Lock()
	r.waiting = append(r.waiting, own)
	if !r.reading {
		r.reading = true
		go r.readAll() // it ends with the last answer
	}
	r.mu.Unlock()
	<-own.came
	return own.states, own.err
}

// readAll reads what waits until nothing does.
func (r *reader) readAll() {
	for {
		r.mu.Lock()
		n := min(len(r.waiting), mostTogether)
		batch := r.waiting[:n:n]
		r.waiting = r.waiting[n:]
		r.reading = n > 0
		r.mu.Unlock()
		if n == 0 {
			return
		}
		r.together(batch)
	}
}

// together reads for several jobs. Their contexts are those of one Scheduler, and end together.
func (r *reader) together(batch []*reading) {
	registers := make([]register.Register, 0, 2*len(batch)+1)
	registers = append(registers, batch[0].job.s.pauseAll)
	for _, b := range batch {
		registers = append(registers, b.job.record, b.job.pause)
	}
	states, err := registers[0].Read(batch[0].ctx, registers[1:]...)
	if err != nil && len(batch) > 1 { // that may be one job's own
		failed := 0
		for len(batch) > 0 && failed < 2 {
			r.together(batch[:1])
			if batch[0].err != nil {
				failed++
			}
			batch = batch[1:]
		}
	}
	for i, b := range batch {
		if b.err = err; err == nil {
			b.states = []register.State{states[2*i+1], states[2*i+2], states[0]}
		}
		close(b.came)
	}
}
