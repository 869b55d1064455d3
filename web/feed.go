package web

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

const (
	// idleAfter is for how long after the last request the cluster is read.
	idleAfter = 30 * time.Second
	// patience is how long a request waits for what nobody has looked at lately.
	patience = 700 * time.Millisecond

	mostReplicas  = 1000 // that are shown; whoever may write to the nodes may invent more
	mostElections = 500
	mostOrders    = 200
)

// snapshot is what is known of the cluster. It is never changed: the next one takes its place.
type snapshot struct {
	seq       uint64 // counts snapshots with something else for pages
	read      [parts]reading
	told      [parts]uint64 // the snapshots that last had news of them
	events    [][]byte      // that happened last, as streams have them; at most mostEvents
	happened  int           // how many have
	nodes     []view.Node
	turned    map[string]time.Time // since when nodes vote for this process or do not; zero for voters at the start
	nodesTold time.Time            // when those that follow were told of them
	replicas  []admin.Replica
	elections []electionRow
	jobs      []*view.Job // in the order of their names
	tooMany   bool        // there are more jobs than are shown
	orders    []view.Order
}

// feed reads the cluster for all pages, as long as one is looked at.
type feed struct {
	admin    *admin.Client
	traceURL string // see WithTraceURL
	loops    []*loop
	details  *store[detailOf, detail]
	down     context.Context // ends with Close
	close    context.CancelFunc
	work     sync.WaitGroup
	reads    sync.WaitGroup // those of run

	mu      sync.Mutex
	now     *snapshot       // guarded by mu; what it points to is not changed
	changed chan struct{}   // guarded by mu; closed with each new snapshot
	wanted  time.Time       // guarded by mu; when it was asked for last
	running bool            // guarded by mu
	began   time.Time       // guarded by mu; when it began to run
	streams int             // guarded by mu; that follow
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

// want has the cluster be read for a while, and returns since when it is.
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

// start has a function called on a goroutine that Close waits for; false after Close.
func (f *feed) start(do func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down.Err() != nil {
		return false
	}
	f.work.Go(do)
	return true
}

// run reads until nobody has looked for a while, or Close.
func (f *feed) run() {
	f.reads.Wait() // those that it had begun before have been told to end
	ctx, cancel := context.WithCancel(f.down)
	defer cancel()
	for _, l := range f.loops {
		f.reads.Go(func() { l.run(ctx, f.readOf) })
	}
	f.reads.Go(func() { f.followTicks(ctx) })
	f.reads.Go(func() { f.watch(ctx) })
	for look := time.Tick(time.Second); f.looked(); {
		select {
		case <-look:
		case <-ctx.Done():
		}
	}
}

// looked reports whether somebody looks; if not, the next one who does has it run anew.
func (f *feed) looked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = f.down.Err() == nil && (f.streams > 0 || time.Since(f.wanted) < idleAfter)
	return f.running
}

// readOf notes that a part was read, or could not be.
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

// peek is what is known.
func (f *feed) peek() (now *snapshot, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now, f.changed
}

// get is what is known, after a wait for what was not read since the cluster is looked at: patience
// at most, and not for a read that others have waited for in vain. Later a part is as old as it
// becomes between two reads, and nobody waits for the next one: where a read takes long that is a
// long time.
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
	f.close() // nothing is started after that
	f.mu.Unlock()
	f.work.Wait()
	f.reads.Wait()
}

// readNodes reads the nodes. That they are as they were is news now and then only.
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

// nodesAnew is how often pages that follow show nodes anew that are as they were.
const nodesAnew = 5 * time.Second

// sameNode reports whether a node does what it did.
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
	f.publish(func(s *snapshot) { s.replicas, s.read[partReplicas].At = replicas, began }) // the elections may ask first
	if !slices.Equal(electionsOf(was.replicas), electionsOf(replicas)) {
		f.loops[partElections].hurry()
	}
	return true, nil
}

// electionsOf are the elections in which replicas take part.
func electionsOf(replicas []admin.Replica) []string {
	all := slices.Sorted(maps.Keys(admin.Candidates(replicas)))
	return all[:min(len(all), mostElections)]
}

// readElections reads those that replicas name.
func (f *feed) readElections(ctx context.Context) (news bool, err error) {
	was, _ := f.peek()
	if was.read[partReplicas].At.IsZero() { // nobody can tell yet which elections there are
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
