//go:build long

package scheduler_test

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	scheduler "github.com/tenure-dev/tenure/scheduler"
)

// dayTTL is that of the leases of the day.
const dayTTL = 10 * time.Second

// A day of fifty jobs on five replicas, with rolling deploys that change schedules, kills, clocks
// that are set wrong and right, nodes that are emptied, outages and pauses. An oracle judges each
// tick, and knows only schedules, policies, and what was done to the service.
//
// The service is on for a span of five minutes, because of the CPU; TestDays has it on for longer.
// A seed gives the same jobs and the same faults, and not the same moments within them: replicas
// draw their pauses themselves. TENURE_SEED sets another one.
func TestADay(t *testing.T) {
	seed := uint64(31)
	if text := os.Getenv("TENURE_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	judgeDay(t, seed, func(d *aDay) { d.on = d.on[:1] })
}

// judgeDay has the oracle judge the day of a seed, in which the service is on when on says.
func judgeDay(t *testing.T, seed uint64, on func(*aDay)) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // the nodes' scripts leave much, and little is kept
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	synctest.Test(t, func(t *testing.T) {
		d := newDay(t, seed, on)
		for _, span := range d.on {
			d.live(span)
		}
		o := newOracle(d)
		for i, wrong := range o.judge() {
			if i == 40 {
				t.Errorf("and %d more", len(o.wrong)-i)
				break
			}
			t.Error(wrong)
		}
		t.Log(o.summary())
	})
}

// aDay is what was done and what came of it.
type aDay struct {
	t     *testing.T
	fleet *redlocktest.Fleet
	dice  *rand.Rand // of the goroutine that plans
	on    []daySpan
	jobs  []*dayJob
	tasks sync.WaitGroup

	version   int // of the goroutine that plans, as the rest
	nodesBusy time.Time

	mu       sync.Mutex
	slots    [5]*dayReplica // guarded by mu, as the rest; nil if nobody is there, or is to be
	busy     [5]bool        // a slot is being deployed, or begun again
	rolling  bool
	replicas []*dayReplica
	runs     []*dayRun
	skips    []daySkip
	pauses   []*dayPause
	outages  []*daySpan
	emptied  int
}

// dayReplica is a replica from its start to its end.
type dayReplica struct {
	slot, version int
	q             *redlock.Quorum
	schedulers    []*scheduler.Scheduler
	clock         settable
	dead          chan struct{}

	// guarded by aDay.mu
	conns    []net.Conn
	started  time.Time
	stopping time.Time // it was told to stop, or killed
	gone     time.Time
	killed   bool
	clocks   []*daySpan // in which its clock is wrong
}

func (r *dayReplica) isDead() bool {
	select {
	case <-r.dead:
		return true
	default:
		return false
	}
}

func newDay(t *testing.T, seed uint64, on func(*aDay)) *aDay {
	d := &aDay{t: t, dice: rand.New(rand.NewPCG(seed, 0)), fleet: redlocktest.StartPipes(t, 3)}
	for _, hour := range []int{3, 9, 16} { // nearer than 1,000 half minutes, which is how far ticks are counted that are left out
		from := day(1, hour, d.dice.IntN(30), d.dice.IntN(60))
		d.on = append(d.on, daySpan{from: from, to: from.Add(5 * time.Minute)})
	}
	on(d)
	d.jobs = dayJobs(d.dice, d.on)
	return d
}

// between draws a time.
func (d *aDay) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.dice.Int64N(int64(most-least)))
}

// soon waits for some time, or until just before or after a full minute.
func (d *aDay) soon() {
	time.Sleep(d.between(2*time.Second, 15*time.Second))
	if d.dice.IntN(2) == 0 {
		next := time.Now().Truncate(time.Minute).Add(time.Minute)
		until(next.Add(d.between(-600*time.Millisecond, 400*time.Millisecond)))
	}
}

// live is a time in which the service is on.
func (d *aDay) live(span daySpan) {
	until(span.from.Add(d.between(0, time.Second)))
	if d.dice.IntN(2) == 0 {
		d.version++
	}
	for slot := range d.slots {
		d.start(slot, d.version, 0)
		time.Sleep(d.between(time.Millisecond, 2*time.Second))
	}
	for d.soon(); time.Now().Before(span.to.Add(-time.Minute)); d.soon() {
		switch n := d.dice.IntN(16); {
		case n < 2:
			d.deploy()
		case n < 6:
			d.kill()
		case n < 9:
			d.setClock()
		case n < 11:
			d.empty()
		case n < 12:
			d.outage()
		default:
			d.pause()
		}
	}
	until(span.to)
	d.tasks.Wait() // all is well again
	for slot, r := range d.slots {
		switch {
		case r == nil:
		case slot == 0 && d.dice.IntN(2) == 0:
			d.end(r, true)
		default:
			d.end(r, false)
		}
		time.Sleep(d.between(time.Millisecond, time.Second))
	}
	d.tasks.Wait()
}

// start starts a replica, whose clock may be wrong.
func (d *aDay) start(slot, version int, wrong time.Duration) {
	r := &dayReplica{slot: slot, version: version, dead: make(chan struct{})}
	r.clock.set(time.Duration(slot-2)*20*time.Millisecond + wrong)
	q, err := redlock.Open(d.fleet.URLs(), redlock.WithClientOption(d.network(r)), redlock.WithTTL(dayTTL), redlock.WithLogger(silent))
	if err != nil {
		d.t.Error(err)
		return
	}
	r.q = q
	for _, election := range []string{"", "some"} {
		opts := []scheduler.Option{
			quiet, scheduler.WithLocation(time.UTC), scheduler.WithLogger(silent), scheduler.WithWall(r.clock.now),
			scheduler.WithTracer(&scheduler.Tracer{Skip: func(_ context.Context, e *scheduler.SkipError) { d.skip(r, e) }}),
		}
		if election != "" {
			opts = append(opts, scheduler.WithElection(election))
		}
		s, err := scheduler.New(q, opts...)
		if err != nil {
			d.t.Error(err)
			return
		}
		r.schedulers = append(r.schedulers, s)
		for _, j := range d.jobs {
			if j.elected != (election != "") {
				continue
			}
			if _, err := s.NewJob(j.plans[j.plan(version)].gives(), gocron.NewTask(d.task(j, r)), j.options(version)...); err != nil {
				d.t.Errorf("%v: %v", j, err)
				return
			}
		}
	}
	d.mu.Lock()
	r.started = time.Now()
	d.replicas, d.slots[slot] = append(d.replicas, r), r
	d.mu.Unlock()
	for _, s := range r.schedulers {
		s.Start()
	}
}

// network is a replica's way to the nodes, which ends with it.
func (d *aDay) network(r *dayReplica) func(string, *valkey.ClientOption) {
	return func(url string, o *valkey.ClientOption) {
		d.fleet.ClientOption(url, o)
		dial := o.DialCtxFn
		o.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
			conn, err := dial(ctx, address, dialer, config)
			d.mu.Lock()
			defer d.mu.Unlock()
			switch {
			case err != nil:
				return nil, err
			case r.isDead():
				_ = conn.Close()
				return nil, errors.New("the process is dead")
			}
			r.conns = append(r.conns, conn)
			return conn, nil
		}
	}
}

// end stops a replica as a deploy does, or kills it: nothing of it counts from then on.
func (d *aDay) end(r *dayReplica, kill bool) {
	d.mu.Lock()
	r.stopping, r.killed = time.Now(), kill
	if d.slots[r.slot] == r {
		d.slots[r.slot] = nil
	}
	if kill {
		for _, c := range r.conns { // first: a dead process writes nothing
			_ = c.Close()
		}
		close(r.dead)
		r.gone = r.stopping
		for _, run := range d.runs {
			if run.on == r && run.ended.IsZero() {
				run.ended, run.how = r.gone, "killed"
			}
		}
	}
	d.mu.Unlock()
	d.tasks.Go(func() {
		if kill {
			_ = r.q.Close()
		}
		for _, s := range r.schedulers {
			if err := s.Shutdown(); err != nil && !kill {
				d.t.Errorf("replica of slot %d: %v", r.slot, err)
			}
		}
		_ = r.q.Close()
		r.q, r.schedulers = nil, nil // a day has thousands of replicas
		d.mu.Lock()
		defer d.mu.Unlock()
		r.conns = nil
		if !kill {
			r.gone = time.Now()
		}
	})
}

// pick returns a replica that nothing else happens to, and marks its slot.
func (d *aDay) pick() *dayReplica {
	n := d.dice.IntN(len(d.slots))
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.slots {
		slot := (n + i) % len(d.slots)
		if r := d.slots[slot]; r != nil && !d.busy[slot] && r.version == d.version {
			d.busy[slot] = true
			return r
		}
	}
	return nil
}

func (d *aDay) free(slot int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy[slot] = false
}

// kill kills a replica, and has it start again.
func (d *aDay) kill() {
	r, pause := d.pick(), d.between(time.Millisecond, 40*time.Second)
	if r == nil {
		return
	}
	version := d.version
	d.end(r, true)
	d.tasks.Go(func() {
		defer d.free(r.slot)
		time.Sleep(pause)
		d.start(r.slot, version, 0)
	})
}

// deploy exchanges replica by replica for a new version. The first one may start with a clock that
// is behind, which must not matter to when a changed schedule was made.
func (d *aDay) deploy() {
	d.mu.Lock()
	can := !d.rolling
	for slot, r := range d.slots {
		can = can && r != nil && !d.busy[slot]
	}
	d.rolling = d.rolling || can
	olds := d.slots
	if can {
		for slot := range d.busy {
			d.busy[slot] = true
		}
	}
	d.mu.Unlock()
	if !can {
		return
	}
	d.version++
	version, together, pause := d.version, d.between(0, 2*time.Second), d.between(time.Second, 6*time.Second)
	behind := []time.Duration{0, 0, 20 * time.Second, 10 * time.Minute}[d.dice.IntN(4)]
	d.tasks.Go(func() {
		for slot, old := range olds {
			if slot > 0 {
				behind = 0
			}
			d.start(slot, version, -behind)
			time.Sleep(together)
			d.end(old, false)
			if behind == 0 {
				d.free(slot)
			} else {
				d.mu.Lock()
				d.setRight(d.slots[slot], behind, time.Minute)
				d.mu.Unlock()
			}
			time.Sleep(pause)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.rolling = false
	})
}

// setClock sets the clock of a replica wrong, and right again after a while.
func (d *aDay) setClock() {
	by := []time.Duration{10 * time.Minute, 10 * time.Minute, 2 * time.Minute, 20 * time.Second, 1500 * time.Millisecond}[d.dice.IntN(5)]
	if d.dice.IntN(2) == 0 {
		by = -by
	}
	r, lasts := d.pick(), d.between(10*time.Second, 2*time.Minute)
	if r == nil {
		return
	}
	r.clock.set(time.Duration(r.clock.ahead.Load()) + by)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setRight(r, -by, lasts)
}

// setRight sets a clock that is wrong from now on right after a while. Its slot is busy until then.
func (d *aDay) setRight(r *dayReplica, by, after time.Duration) {
	wrong := &daySpan{from: time.Now()}
	r.clocks = append(r.clocks, wrong)
	d.tasks.Go(func() {
		defer d.free(r.slot)
		time.Sleep(after)
		r.clock.set(time.Duration(r.clock.ahead.Load()) + by)
		d.mu.Lock()
		defer d.mu.Unlock()
		wrong.to = time.Now()
	})
}

// empty restarts a node without its data.
func (d *aDay) empty() {
	node, down := d.fleet.Node(d.dice.IntN(3)), d.between(0, 20*time.Second)
	if time.Now().Before(d.nodesBusy) {
		return
	}
	d.nodesBusy = time.Now().Add(down + time.Minute)
	d.emptied++
	_ = node.Kill()
	d.tasks.Go(func() {
		time.Sleep(down)
		if err := node.Restart(false); err != nil {
			d.t.Error(err)
		}
	})
}

// outage has two nodes answer nothing for a while.
func (d *aDay) outage() {
	first, lasts := d.dice.IntN(3), d.between(500*time.Millisecond, 40*time.Second)
	if time.Now().Before(d.nodesBusy) {
		return
	}
	d.nodesBusy = time.Now().Add(lasts + time.Minute)
	span := &daySpan{from: time.Now()}
	d.mu.Lock()
	d.outages = append(d.outages, span)
	d.mu.Unlock()
	nodes := []*redlocktest.Node{d.fleet.Node(first), d.fleet.Node((first + 1) % 3)}
	for _, n := range nodes {
		_ = n.Freeze()
	}
	d.tasks.Go(func() {
		time.Sleep(lasts)
		for _, n := range nodes {
			_ = n.Thaw()
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		span.to = time.Now()
	})
}

// dayPause is a pause of a job, or of all if it has no name.
type dayPause struct {
	job            string
	asked, stands  time.Time // Pause was called, and has returned
	resumes, ended time.Time // Resume was
}

// pause pauses a job, or all, and resumes it.
func (d *aDay) pause() {
	p, lasts := &dayPause{asked: time.Now()}, d.between(15*time.Second, 150*time.Second)
	edge := time.Duration(0)
	if d.dice.IntN(3) == 0 {
		edge = d.between(-600*time.Millisecond, 100*time.Millisecond)
	}
	if d.dice.IntN(5) > 0 {
		p.job = d.jobs[d.dice.IntN(len(d.jobs))].name
	}
	d.mu.Lock()
	for _, other := range d.pauses {
		if other.job == p.job && other.ended.IsZero() {
			d.mu.Unlock()
			return
		}
	}
	d.pauses = append(d.pauses, p)
	d.mu.Unlock()
	key := ""
	if p.job != "" {
		key = scheduler.KeyPrefix + p.job
	}
	d.tasks.Go(func() {
		q, err := redlock.Open(d.fleet.URLs(), redlock.WithClientOption(d.fleet.ClientOption), redlock.WithTTL(dayTTL), redlock.WithLogger(silent))
		if err != nil {
			d.t.Error(err)
			return
		}
		defer q.Close()
		d.insist(func(ctx context.Context) error {
			_, _, err := pause.Set(ctx, q, key, pause.Pause{By: "ann"})
			return err
		})
		d.set(&p.stands)
		time.Sleep(lasts)
		if edge != 0 {
			until(time.Now().Truncate(time.Minute).Add(time.Minute + edge))
		}
		d.set(&p.resumes)
		d.insist(func(ctx context.Context) error {
			_, _, err := pause.Resume(ctx, q, key, "ann", "")
			return err
		})
		d.set(&p.ended)
	})
}

func (d *aDay) set(at *time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*at = time.Now()
}

// insist repeats what fails.
func (d *aDay) insist(do func(context.Context) error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		err := do(ctx)
		cancel()
		if err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// dayRun is a run that has begun.
type dayRun struct {
	job          *dayJob
	due          time.Time
	attempt      int
	why          string
	token        uint64
	on           *dayReplica
	began, ended time.Time
	wall, other  time.Time // the replica's clock when it began, and by the right clock if it was set then
	how          string    // done, told (it obeyed), panicked or killed
	lost         bool      // the lease had ended
}

// task is a job's task on a replica.
func (d *aDay) task(j *dayJob, r *dayReplica) func(context.Context) error {
	return func(ctx context.Context) error {
		of, _ := scheduler.RunFromContext(ctx)
		run := &dayRun{job: j, due: of.Due, attempt: of.Attempt, why: of.Why, token: of.FencingToken(), on: r, began: time.Now(), wall: r.clock.now()}
		d.mu.Lock()
		if !r.isDead() {
			d.runs = append(d.runs, run)
		}
		d.mu.Unlock()
		how := "done"
		select {
		case <-r.dead:
			return errors.New("killed")
		case <-ctx.Done():
			how = "told"
		case <-time.After(j.takes):
		}
		if how == "done" && j.panics && run.attempt < 3 && run.due.Unix()/60%4 == 0 {
			how = "panicked"
		}
		d.mu.Lock()
		if run.ended.IsZero() {
			run.ended, run.how, run.lost = time.Now(), how, of.Lease().Err() != nil
		}
		d.mu.Unlock()
		switch how {
		case "told":
			return context.Cause(ctx)
		case "panicked":
			panic("a panic of the day")
		}
		return nil
	}
}

// daySkip is what a replica has told of ticks that are not run.
type daySkip struct {
	*scheduler.SkipError
	on       *dayReplica
	at, wall time.Time
}

func (d *aDay) skip(r *dayReplica, e *scheduler.SkipError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !e.Pending && !r.isDead() {
		d.skips = append(d.skips, daySkip{e, r, time.Now(), r.clock.now()})
	}
}
