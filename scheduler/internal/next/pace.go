package scheduler

import (
	"maps"
	"sync"
	"time"
)

// maxPaces bounds how many jobs a Locker compares the intervals of.
const maxPaces = 1024

// paces knows when jobs were due last.
type paces struct {
	mu   sync.Mutex
	jobs map[string]*pace // guarded by mu; at most maxPaces
}

// pace is when Lock was called for a job.
type pace struct {
	last, before time.Time
	warned       bool
}

// hurried notes a call of Lock, and reports whether this one and the two before it came less than a
// minimum hold after each other. One such call may be a job.RunNow soon after a tick.
func (p *paces) hurried(name string, minHold time.Duration) bool {
	if minHold == 0 {
		return false
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	job := p.jobs[name]
	if job == nil {
		if len(p.jobs) >= maxPaces {
			// Those that were due long ago are compared with nothing any more.
			maps.DeleteFunc(p.jobs, func(_ string, j *pace) bool { return now.Sub(j.last) >= minHold })
		}
		if len(p.jobs) >= maxPaces {
			return false
		}
		if p.jobs == nil {
			p.jobs = make(map[string]*pace)
		}
		job = &pace{}
		p.jobs[name] = job
	}
	hurried := now.Sub(job.last) < minHold && job.last.Sub(job.before) < minHold
	job.last, job.before = now, job.last
	return hurried
}

// warn reports whether the job has not been warned of yet.
func (p *paces) warn(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	job := p.jobs[name]
	if job == nil || job.warned {
		return false
	}
	job.warned = true
	return true
}
