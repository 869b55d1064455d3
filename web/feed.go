package web

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/admin"
	clocks "github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/view"
)

const (
	// idleAfter is how long after the last request the cluster is still read.
	idleAfter = 30 * time.Second
	// patience is how long a request waits for data that was not read lately.
	patience = 700 * time.Millisecond

	mostReplicas  = 1000 // that are shown, because any writer of the nodes may invent more
	mostElections = 500
	mostOrders    = 200
)

// snapshot is the known state of the cluster. It is immutable: a change makes a new snapshot.
type snapshot struct {
	seq       uint64 // counts the snapshots with news for pages
	read      [parts]reading
	told      [parts]uint64 // for each part, the seq of the last snapshot with news of it
	events    [][]byte      // the last events, as text of a stream; at most mostEvents
	happened  int           // how many events there have been
	nodes     []view.Node
	turned    map[string]time.Time // since when a node votes for this process or not; zero for voters from the start
	nodesTold time.Time            // when streams were last told of the nodes
	replicas  []admin.Replica
	elections []electionRow
	jobs      []*view.Job // sorted by name
	tooMany   bool        // there are more jobs than jobs has
	orders    []view.Order
}

// feed reads the cluster for all pages, while at least one is looked at.
type feed struct {
	admin    *admin.Client
	traceURL string // see WithTraceURL
	loops    []*loop
	details  *store[detailOf, detail]
	down     context.Context // ends with Close
	close    context.CancelFunc
	work     sync.WaitGroup
	reads    sync.WaitGroup // the goroutines of run

	mu      sync.Mutex
	now     *snapshot       // guarded by mu; the snapshot itself is immutable
	changed chan struct{}   // guarded by mu; closed with each new snapshot
	wanted  time.Time       // guarded by mu; time of the last request
	running bool            // guarded by mu
	began   time.Time       // guarded by mu; when run began
	streams int             // guarded by mu; open streams
	touched map[string]bool // guarded by mu; names of jobs to be read soon; at most mostJobs
}

func newFeed(a *admin.Client, traceURL string) *feed {
	f := &feed{
		admin: a, traceURL: traceURL, details: newStore[detailOf, detail](mostDetails), now: &snapshot{}, changed: make(chan struct{}), touched: make(map[string]bool),
	}
	f.down, f.close = context.WithCancel(context.Background())
	f.loops = []*loop{
		newLoop(partNodes, 500*time.Millisecond, 3*time.Second, 1, f.readNodes),
		newLoop(partReplicas, 5*time.Second, 5*time.Second, 10, f.readReplicas),
		newLoop(partElections, time.Second, 5*time.Second, 4, f.readElections),
		newLoop(partJobs, jobsEvery, time.Minute, 10, f.readJobs),
		newLoop(partOrders, 5*time.Second, 5*time.Second, 10, f.readOrders),
	}
	return f
}

// want has the cluster read for idleAfter, and returns when the present reads began.
func (f *feed) want() (began time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted = time.Now()
	if !f.running && f.down.Err() == nil {
		f.running, f.began = true, f.wanted
		f.work.Go(f.run)
	}
	return f.began
}

// start calls do on a goroutine that Close waits for. After Close it returns false and does not
// call do.
func (f *feed) start(do func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down.Err() != nil {
		return false
	}
	f.work.Go(do)
	return true
}

// run reads the cluster until no page has been looked at for idleAfter, or until Close.
func (f *feed) run() {
	f.reads.Wait() // the reads of an earlier run, which was told to end
	ctx, cancel := context.WithCancel(f.down)
	defer cancel()
	for _, l := range f.loops {
		f.reads.Go(func() { l.run(ctx, f.readOf) })
	}
	f.reads.Go(func() { f.followTicks(ctx) })
	f.reads.Go(func() { f.watch(ctx) })
	for f.looked() {
		_ = clocks.Sleep(ctx, time.Second)
	}
}

// looked reports whether a page is looked at. If not, running is false, and the next request begins
// a new run.
func (f *feed) looked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = f.down.Err() == nil && (f.streams > 0 || time.Since(f.wanted) < idleAfter)
	return f.running
}

// readOf notes the end of a read of a part.
func (f *feed) readOf(p part, began time.Time, news bool, err error) {
	f.publish(func(s *snapshot) {
		r := &s.read[p]
		r.Tried, r.Err = time.Now(), err
		if err == nil {
			r.At = began
		}
		if news || err != nil {
			s.told[p] = s.seq
		}
	})
}

// publish makes the next snapshot.
func (f *feed) publish(change func(*snapshot)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := *f.now
	next.seq++
	change(&next)
	f.now = &next
	close(f.changed)
	f.changed = make(chan struct{})
}

// peek returns the present snapshot, and a channel that is closed with the next one.
func (f *feed) peek() (now *snapshot, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now, f.changed
}

// get returns the present snapshot. If a needed part was not read since the reads began, get first
// waits for it, for patience at most. It does not wait for a read that has already gone on for that
// long. Once a part was read, get never waits: the part may then be as old as the time between two
// reads.
func (f *feed) get(ctx context.Context, need []part) *snapshot {
	began := f.want()
	end := time.After(patience)
	for {
		now, changed := f.peek()
		missing := func(p part) bool {
			return now.read[p].Tried.Before(began) && f.loops[p].busy(time.Now()) < patience
		}
		if !slices.ContainsFunc(need, missing) {
			return now
		}
		select {
		case <-changed:
			continue
		case <-end:
		case <-ctx.Done():
		case <-f.down.Done():
		}
		return now
	}
}

// end ends all reads and waits for them.
func (f *feed) end() {
	f.mu.Lock()
	f.close() // start and want begin nothing after that
	f.mu.Unlock()
	f.work.Wait()
	f.reads.Wait()
}

// readNodes reads the nodes. If no node has changed, that is news only once every nodesAnew.
func (f *feed) readNodes(ctx context.Context) (news bool, err error) {
	began := time.Now()
	look := f.admin.Look(ctx)
	was, _ := f.peek()
	nodes := withReplicas(look, began, was)
	turned := make(map[string]time.Time)
	for _, n := range nodes {
		i := slices.IndexFunc(was.nodes, func(x view.Node) bool { return x.Node == n.Node })
		if votes := yesOrNo(n.Votes); i >= 0 && votes == yesOrNo(was.nodes[i].Votes) {
			turned[n.Node] = was.turned[n.Node]
		} else if i >= 0 || votes == "false" {
			turned[n.Node] = began
		}
	}
	f.publish(func(s *snapshot) {
		s.nodes, s.turned = nodes, turned
		if news = !slices.EqualFunc(was.nodes, nodes, sameNode) || time.Since(was.nodesTold) > nodesAnew; news {
			s.nodesTold = time.Now()
		}
	})
	return news, nil
}

// nodesAnew is how often streams are told of nodes that have not changed.
const nodesAnew = 5 * time.Second

// sameNode reports whether two reads of a node agree, apart from times and measurements.
func sameNode(x, y view.Node) bool {
	return x.Node == y.Node && yesOrNo(x.Votes) == yesOrNo(y.Votes) && x.Reachable == y.Reachable && x.ErrorType == y.ErrorType && x.QuarantinedUntil == y.QuarantinedUntil &&
		slices.EqualFunc(x.Warnings, y.Warnings, func(v, w view.Warning) bool { return v.Type == w.Type })
}

func (f *feed) readReplicas(ctx context.Context) (news bool, err error) {
	began := time.Now()
	replicas, err := f.admin.Replicas(ctx)
	if err != nil {
		return false, err
	}
	replicas = replicas[:min(len(replicas), mostReplicas)]
	was, _ := f.peek()
	f.publish(func(s *snapshot) { s.replicas, s.read[partReplicas].At = replicas, began }) // elections need them first
	if !slices.Equal(electionsOf(was.replicas), electionsOf(replicas)) {
		f.loops[partElections].hurry()
	}
	return true, nil
}

// electionsOf returns the elections in which replicas take part, sorted.
func electionsOf(replicas []admin.Replica) []string {
	all := slices.Sorted(maps.Keys(admin.Candidates(replicas)))
	return all[:min(len(all), mostElections)]
}

// readElections reads the elections that replicas name.
func (f *feed) readElections(ctx context.Context) (news bool, err error) {
	was, _ := f.peek()
	if was.read[partReplicas].At.IsZero() { // the names of the elections are not known yet
		if _, err := f.readReplicas(ctx); err != nil {
			return false, err
		}
		was, _ = f.peek()
	}
	candidates := admin.Candidates(was.replicas)
	var all []electionRow
	for _, name := range electionsOf(was.replicas) {
		at := time.Now()
		e, err := f.admin.Election(ctx, name)
		if err != nil {
			return false, err
		}
		e.Candidates = candidates[name]
		row := electionRow{Election: view.NewElection(e, at)}
		if row.Leader != nil {
			row.Full = row.Leader.LeaseLeft
			i, found := slices.BinarySearchFunc(was.elections, name, func(x electionRow, name string) int { return strings.Compare(x.Name, name) })
			if found && was.elections[i].Leader != nil && was.elections[i].Leader.Term == row.Leader.Term {
				row.Full = max(row.Full, was.elections[i].Full)
			}
		}
		all = append(all, row)
	}
	f.publish(func(s *snapshot) { s.elections = all })
	return true, nil
}

func (f *feed) readOrders(ctx context.Context) (news bool, err error) {
	orders, err := f.admin.Orders(ctx, mostOrders)
	if err != nil {
		return false, err
	}
	f.publish(func(s *snapshot) { s.orders = view.All(orders, view.NewOrder) })
	return true, nil
}

// part is a part of the cluster that is read separately, so that a node that hangs, or a thousand
// jobs, do not delay the other parts.
type part int

// The parts.
const (
	partNodes part = iota
	partReplicas
	partElections
	partJobs
	partOrders
	parts
)

var partNames = [parts]string{"nodes", "replicas", "elections", "jobs", "orders"}

func (p part) String() string { return partNames[p] }

// reading is the last read of a part.
type reading struct {
	At    time.Time // beginning of the last successful read; zero for never
	Tried time.Time // end of the last read, successful or not; zero for never
	Err   error     // of the last read; nil if it succeeded
}

// loop reads a part periodically, while a page is looked at.
type loop struct {
	part  part
	every time.Duration // time from the end of a read to the next; wake shortens it, a rest may prolong it
	most  time.Duration // bound of a read
	share int           // reads take at most 1/share of the time, unless a read is slow
	read  func(ctx context.Context) (news bool, err error)
	wake  chan struct{} // holds a token if something has happened
	began atomic.Int64  // beginning of the present read in Unix milliseconds; 0 for none
}

// longestRest bounds a rest, because the state of nodes that were slow for a moment may have
// changed.
const longestRest = 15 * time.Second

// rest returns how long a loop rests after a read that took this long, so that reads take 1/share
// of the time.
func rest(took time.Duration, share int) time.Duration {
	return min(time.Duration(share-1)*took, longestRest)
}

// soonest is the least time from a read to the next one, if an event asks for it.
const soonest = 200 * time.Millisecond

func newLoop(p part, every, most time.Duration, share int, read func(context.Context) (news bool, err error)) *loop {
	return &loop{part: p, every: every, most: most, share: share, read: read, wake: make(chan struct{}, 1)}
}

// hurry has the part read soon.
func (l *loop) hurry() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run reads until ctx ends, and calls done after each read.
func (l *loop) run(ctx context.Context, done func(p part, began time.Time, news bool, err error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.wake:
		}
		began := time.Now()
		l.began.Store(began.UnixMilli())
		within, cancel := context.WithTimeout(ctx, l.most)
		news, err := l.read(within)
		cancel()
		l.began.Store(0)
		if ctx.Err() != nil {
			return
		}
		done(l.part, began, news, err)
		took := time.Since(began)
		timer.Reset(max(l.every, rest(took, l.share)))
		if clocks.Sleep(ctx, max(soonest, took)) != nil {
			return
		}
	}
}

// busy returns how long the present read has gone on; zero for none.
func (l *loop) busy(now time.Time) time.Duration {
	began := l.began.Load()
	if began == 0 {
		return 0
	}
	return now.Sub(time.UnixMilli(began))
}
