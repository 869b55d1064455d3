package scheduler_test

import (
	"context"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/scheduler"
)

// conflicts is a tracer that counts what it is told of conflicts.
type conflicts struct {
	*book
	mu   sync.Mutex
	told []scheduler.Conflict // guarded by mu
}

func (c *conflicts) TraceConflict(_ context.Context, data scheduler.TraceConflictData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, data.Conflict)
}

func (c *conflicts) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.told)
}

// party is a replica whose conflicts are watched.
type party struct {
	*replica
	log    *journal
	tracer *conflicts
}

func (c *cluster) party(name string, opts ...scheduler.Option) *party {
	p := &party{log: new(journal), tracer: &conflicts{book: c.book}}
	p.replica = c.named(name, append(opts, scheduler.WithLogger(p.log.logger()), scheduler.WithTracer(p.tracer))...)
	return p
}

// warnings returns what is in the log of conflicts.
func (p *party) warnings() []string {
	return p.log.lines("a job of this name is run in another way too")
}

var minutely = gocron.CronJob("* * * * *", false)
