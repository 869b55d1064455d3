package demo

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/examples/demo/internal/service"
)

// stopPatience is how long a replica may take to stop in order.
const stopPatience = 10 * time.Second

// replica is one of the replicas, over all its lives.
type replica struct {
	number int
	name   string
	state  string
	cut    []bool    // the links to the nodes that are cut
	proc   Process   // nil while the replica is dead
	lives  int       // begun so far
	ending string    // why this life is about to end, which is how its items end: killed, stopped
	harmed time.Time // when it was last harmed: killed, frozen, stopped or cut off

	spans  map[lease]*span // the leases that it holds
	term   *span           // the lease on the election; nil for none
	run    *span           // the lease on the job; nil for none
	wrote  uint64          // the largest token with which it has written
	outage *Item           // nil for none
}

// lease identifies a lease of a replica.
type lease struct {
	of    string
	token uint64
}

// leader returns the replica that leads, or nil. That is the one with a valid lease on the election
// and the largest token.
func (d *Demo) leader(now time.Time) *replica {
	var found *replica
	for _, r := range d.replicas {
		if r.term != nil && r.term.item.Until > now.UnixMilli() && (found == nil || r.term.item.Token > found.term.item.Token) {
			found = r
		}
	}
	return found
}

// start starts a replica. It does nothing if the replica is running.
func (d *Demo) start(r *replica) error {
	if r.proc != nil {
		return nil
	}
	settings := d.settings()
	settings.Replica, settings.Number = r.name, r.number
	proc, err := d.cfg.Launch(settings, func(rep service.Report) { d.report(r, rep) }, func(err error) { d.exited(r, err) })
	if err != nil {
		return fmt.Errorf("cannot start replica %s: %w", r.name, err)
	}
	r.proc, r.state, r.ending = proc, Starting, ""
	r.lives++
	r.spans = make(map[lease]*span)
	d.endOutage(&r.outage)
	d.more.Broadcast()
	return nil
}

// exited records the end of a life. It is called without the mutex.
func (d *Demo) exited(r *replica, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.more.Broadcast()
	at, how := time.Now(), cmp.Or(r.ending, "died")
	if r.ending == "killed" {
		at = r.harmed
	}
	for _, s := range r.spans {
		s.end(at.UnixMilli(), how)
		d.tell(s.item)
	}
	r.spans, r.term, r.run, r.proc, r.state = nil, nil, nil, nil, Dead
	switch {
	case r.ending == "" || r.ending == "stopped" && err != nil:
		d.say(Bad, "%s ended by itself: %v", r.name, err)
	case r.ending == "stopped":
		d.say(Info, "%s has stopped, in order", r.name)
	}
	if r.outage == nil {
		d.beginOutage(&r.outage, Item{Replica: r.name, Text: how})
	}
}

// report handles a report of a replica. It is called without the mutex.
func (d *Demo) report(r *replica, rep service.Report) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.more.Broadcast()
	name := lease{rep.Of, rep.Token}
	s := r.spans[name]
	switch rep.Kind {
	case service.Up:
		r.state = Running
		d.say(Info, "%s is up", r.name)
	case service.Claimed:
		d.seen = max(d.seen, rep.Token)
	case service.Written:
		d.write(r, rep)
	case service.Granted:
		d.granted(r, name, rep)
	case service.Begun:
		if s != nil {
			d.begun(r, s, rep)
		}
	case service.Extended:
		if s != nil {
			s.extend(rep.At, rep.Until)
			d.tell(s.item)
		}
	case service.Released, service.Lost:
		if s != nil {
			d.ended(r, name, s, rep)
		}
	}
	d.look(time.Now())
}

// granted handles the grant of a lease.
func (d *Demo) granted(r *replica, name lease, rep service.Report) {
	i := d.add(Item{Kind: name.of, Replica: r.name, From: rep.At, Until: rep.Until, Token: rep.Token})
	s := d.ledger.grant(i)
	r.spans[name] = s
	if name.of != service.OfTerm {
		return
	}
	r.term = s
	if l := d.leaver; l != nil && l.name != r.name {
		d.takenOver(l, r, rep)
		return
	}
	d.leaver = nil // the harmed leader leads again itself
	d.say(Info, "%s is elected, term %d", r.name, rep.Token)
}

func (d *Demo) takenOver(l *leaver, r *replica, rep service.Report) {
	after := max(0, rep.At-l.at.UnixMilli())
	bound := ttl.Milliseconds() + slack.Milliseconds()
	switch l.cause {
	case "stop":
		bound = slack.Milliseconds()
	case "lost":
		bound = 0
	}
	d.takeover = &Takeover{From: l.name, To: r.name, Cause: l.cause, After: after, Bound: bound}
	d.leaver = nil
	d.say(Good, "%s is elected, term %d: %.2f s after %s %s", r.name, rep.Token, float64(after)/1000, l.name, past[l.cause])
}

// slack is how long it may take to wake processes and to acquire a lease that is free.
const slack = 500 * time.Millisecond

var past = map[string]string{
	"kill": "was killed", "freeze": "was frozen", "stop": "was told to stop", "partition": "was cut off",
	"lost": "lost its lease",
}

func (d *Demo) begun(r *replica, s *span, rep service.Report) {
	r.run = s
	i := s.item
	i.Tick, i.Attempt, i.Until = rep.Tick, rep.Attempt, max(i.Until, rep.Until)
	i.Late = rep.At-rep.Tick >= time.Second.Milliseconds()
	if !d.ledger.begin(rep.Tick, rep.Attempt) {
		i.Bad = true
		d.say(Bad, "TICK %s RUNS TWICE, now on %s", time.UnixMilli(rep.Tick).Format(time.TimeOnly), r.name)
	}
	if rep.Attempt > 1 {
		d.say(Info, "%s runs tick %s again, which was cut short", r.name, time.UnixMilli(rep.Tick).Format(time.TimeOnly))
	}
	d.tell(i)
}

func (d *Demo) ended(r *replica, name lease, s *span, rep service.Report) {
	delete(r.spans, name)
	how := "released"
	if rep.Kind == service.Lost {
		how = "lost: " + rep.Why
	}
	s.end(rep.At, how)
	d.tell(s.item)
	if r.term == s {
		r.term = nil
		if rep.Kind == service.Lost {
			d.say(Info, "%s knows that it leads no longer (%s)", r.name, rep.Why)
			if d.leaver == nil {
				d.leaver = &leaver{r.name, "lost", time.UnixMilli(rep.At)}
			}
		}
	}
	if r.run == s {
		r.run = nil
	}
}

// harmed records that a replica was harmed. If the replica leads, the time of a take-over counts
// from then.
func (d *Demo) harmed(r *replica, cause string, at time.Time) {
	r.harmed = at
	if l := d.leader(at); l == r {
		d.leaver = &leaver{r.name, cause, at}
	}
}

// stop stops a replica in order, and returns when it is gone. It returns nil at once if the replica
// is dead. If the replica does not stop within stopPatience, it is killed, which is an error.
func (d *Demo) stop(r *replica) error {
	if r.proc == nil {
		return nil
	}
	if r.state == Frozen {
		r.proc("thaw")
	}
	if r.ending == "" {
		r.ending = "stopped"
	}
	r.state = Stopping
	d.harmed(r, "stop", time.Now())
	r.proc("stop")
	err := d.await(stopPatience, r.name+" did not stop", r.gone())
	if err != nil {
		d.kill(r)
	}
	return err
}

// kill ends a replica at once, and returns when it is gone. It does nothing if the replica is dead.
func (d *Demo) kill(r *replica) {
	if r.proc == nil {
		return
	}
	r.ending = "killed"
	d.harmed(r, "kill", time.Now())
	r.proc("kill")
	for gone := r.gone(); !gone(); {
		d.more.Wait()
	}
}

// gone returns a function that reports whether the present life of the replica is over.
func (r *replica) gone() func() bool {
	life := r.lives
	return func() bool { return r.proc == nil || r.lives != life }
}
