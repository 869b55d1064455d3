package scheduler

import (
	"context"

	"github.com/tenure-dev/tenure/internal/register"
)

// mostTogether is how many jobs are read with one command a node. A command reads 32 registers: two
// for each job, and the pause of all jobs.
const mostTogether = 15

// reading is a request to read a job's record and pauses.
type reading struct {
	job    *job
	states []register.State
	came   chan error
}

// readStates returns the states of a job's record, its pause and the pause of all jobs, in this
// order.
func (j *job) readStates(ctx context.Context) ([]register.State, error) {
	own := &reading{job: j, came: make(chan error, 1)}
	select {
	case j.s.readings <- own:
		err := <-own.came
		return own.states, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// readAll serves the readings until ctx ends. Readings that come while a read is under way are read
// together, so thousands of jobs that wake at once cost a few commands.
func (s *Scheduler) readAll(ctx context.Context) {
	for {
		select {
		case own := <-s.readings:
			batch := []*reading{own}
			for more := true; more && len(batch) < mostTogether; {
				select {
				case own := <-s.readings:
					batch = append(batch, own)
				default:
					more = false
				}
			}
			// A full batch is read in the background: there may be more readings, which need not
			// wait.
			if len(batch) < mostTogether || !s.run(func() { s.readTogether(ctx, batch) }) {
				s.readTogether(ctx, batch)
			}
		case <-ctx.Done():
			return
		}
	}
}

// readTogether reads for several jobs. If that fails, it tries each job alone, until two have
// failed.
func (s *Scheduler) readTogether(ctx context.Context, batch []*reading) {
	registers := make([]register.Register, 0, 2*len(batch))
	for _, b := range batch {
		registers = append(registers, b.job.record, b.job.pause)
	}
	states, err := s.pauseAll.Read(ctx, registers...)
	if err != nil && len(batch) > 1 { // the cause may be one job's record
		for failed := 0; len(batch) > 0 && failed < 2; batch = batch[1:] {
			if s.readTogether(ctx, batch[:1]); batch[0].states == nil {
				failed++
			}
		}
	}
	for i, b := range batch {
		if err == nil {
			b.states = []register.State{states[2*i+1], states[2*i+2], states[0]}
		}
		b.came <- err
	}
}
