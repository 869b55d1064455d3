package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

const (
	// nodes is how many servers there are.
	nodes = 5
	// defaultTTL is the TTL of locks: Tenure's default. redsync's is 8 s, and valkeylock's 5 s.
	defaultTTL = 10 * time.Second
)

// size is how much a run does. It holds no results.
type size struct {
	rounds      int
	few         int           // rounds of rows that take long
	slice       time.Duration // of a round, for one rival
	contended   time.Duration
	handover    time.Duration
	waiter      time.Duration
	frozen      time.Duration
	slowToo     bool // with the cases that take long: redsync with a frozen server, and waiters besides Tenure's
	crashTrials int
	crashTTL    time.Duration
	others      int // other keys with an expiry
	giveUp      time.Duration
	held        int
	hold        time.Duration
	heldTTL     time.Duration
	stallLeases int
	stallHold   time.Duration // after the stall
	due         int           // jobs that are due at once
}

// fullSize takes about 15 minutes.
var fullSize = size{
	rounds: 11, few: 3, slice: 350 * time.Millisecond, contended: 3 * time.Second, handover: 2 * time.Second,
	waiter: 10 * time.Second, frozen: 2 * time.Second, slowToo: true,
	crashTrials: 5, crashTTL: 1500 * time.Millisecond, others: 100_000, giveUp: 5 * time.Second,
	held: 10_000, hold: 30 * time.Second, heldTTL: 10 * time.Second, stallLeases: 1000, stallHold: 20 * time.Second, due: 1000,
}

// row is some work, and its measurements.
type row struct {
	name, title string
	columns     []column
	work        string                 // what is done, with the sizes of this run
	absent      map[*rival.Kind]string // why rivals have no numbers
	rounds      int
	kinds       []*rival.Kind
	measure     func(s *stage, ctx context.Context, b *board, k *rival.Kind) error // one rival in one round, on empty servers
	all         func(s *stage, ctx context.Context, b *board) error                // all of it, in place of measure
}

// run makes all measurements of the board's row.
func (b *board) run(ctx context.Context, s *stage) error {
	for k, why := range b.row.absent {
		b.absent(k, why)
	}
	if b.all != nil {
		return b.all(s, ctx, b)
	}
	return s.each(ctx, b.rounds, b.kinds, func(k *rival.Kind) error { return b.measure(s, ctx, b, k) })
}

// rows returns all rows, in the order in which they run.
func rows(sz size) []*row {
	waiting := []*rival.Kind{rival.Tenure, rival.Redsync, rival.Redislock, rival.Valkeylock} // those that can wait
	handing := append([]*rival.Kind{rival.Oracle}, waiting...)                               // and the floor of a hand-over
	cannotWait := map[*rival.Kind]string{rival.Floor: "has no way to wait"}
	frozen, crashing := []*rival.Kind{rival.Floor, rival.Tenure}, waiting[:1]
	if sz.slowToo {
		frozen, crashing = append(frozen, rival.Redsync), waiting
	}
	due := func(name string, jobs int) *row {
		return &row{
			name: name, title: "jobs that are due in one second, three processes",
			columns: []column{{Name: "p50 ms"}, {Name: "p99 ms"}, {Name: "max ms"}, {Name: "lost"}, {Name: "twice"}},
			work: "So many jobs with the same crontab, whose tasks return at once. Late is the beginning of the task after the due time. " +
				"gocron alone is one process, and has nobody to agree with. ",
			rounds: sz.few, kinds: []*rival.Kind{tenureScheduler, gocronAlone, gocronRedisLock},
			measure: func(s *stage, ctx context.Context, b *board, k *rival.Kind) error { return s.due(ctx, b, k, jobs) },
		}
	}
	return []*row{
		{
			name: "pair", title: "acquire and release, one goroutine",
			columns: []column{{Name: "p50 us"}, {Name: "p99 us"}, {Name: "p50 x floor", Of: "p50 us", To: rival.Floor},
				{Name: "p50 x redsync", Of: "p50 us", To: rival.Redsync}, {Name: clientCPU},
				{Name: serverCPU}, {Name: allocations}, {Name: "keys left"}},
			work:   fmt.Sprintf("%d rounds of %s each; each pair has a new key. ", sz.rounds, sz.slice),
			rounds: sz.rounds, kinds: []*rival.Kind{rival.Floor, rival.Batcher, rival.Tenure, rival.Redsync, rival.Redislock, rival.Valkeylock},
			all: (*stage).pair,
		},
		{
			name: "distinct64", title: fmt.Sprintf("acquire and release, %d goroutines, a key each", goroutines),
			columns: []column{{Name: "pairs/s"}, {Name: "x floor", Of: "pairs/s", To: rival.Floor},
				{Name: "x batching", Of: "pairs/s", To: rival.Batcher}, {Name: "x redsync", Of: "pairs/s", To: rival.Redsync},
				{Name: "x no standby", Of: "pairs/s", To: rival.Tenure},
				{Name: clientCPU}, {Name: "client CPU x batching", Of: clientCPU, To: rival.Batcher},
				{Name: serverCPU}, {Name: "server CPU x batching", Of: serverCPU, To: rival.Batcher},
				{Name: allocations}},
			work:   fmt.Sprintf("Each goroutine has one key, over and over. %d rounds of %s with %d goroutines. ", sz.rounds, sz.slice, goroutines),
			rounds: sz.rounds, kinds: slices.DeleteFunc(rival.All(), func(k *rival.Kind) bool { return k == rival.Oracle }),
			measure: (*stage).distinct,
		},
		{
			name: "contended", title: fmt.Sprintf("%d contenders with clients of their own, one key, held for %s", contenders, contendedHold),
			columns: []column{{Name: "acquisitions/s"}, {Name: "acquisitions x floor", Of: "acquisitions/s", To: rival.Oracle}, {Name: "commands each"},
				{Name: "hand-over p50 ms"}, {Name: "hand-over x floor", Of: "hand-over p50 ms", To: rival.Oracle}, {Name: "hand-over p99 ms"},
				{Name: "least of a contender"}, {Name: "most"}, {Name: "least/most"}},
			work: fmt.Sprintf("%d rounds of %s. Commands are those that the contenders sent. A hand-over is from the call of release until the next has it.",
				sz.few, sz.contended),
			absent: cannotWait, rounds: sz.few, kinds: handing, measure: (*stage).contend,
		},
		{
			name: "handover", title: "graceful hand-over to one waiter",
			columns: []column{{Name: "p50 ms"}, {Name: "x floor", Of: "p50 ms", To: rival.Oracle}, {Name: "p99 ms"}},
			work:    fmt.Sprintf("%d rounds of %s: two take turns. From the call of release until the waiter has the key.", sz.few, sz.handover),
			absent:  cannotWait, rounds: sz.few, kinds: handing, measure: (*stage).handOver,
		},
		{
			name: "waiter", title: "one idle waiter",
			columns: []column{{Name: "commands/s"}, {Name: "commands per TTL per node"}, {Name: "CPU us/s"}},
			work: fmt.Sprintf("%s of waiting for a key that another process holds, TTL %s. The commands are those that the waiter sends.",
				sz.waiter, defaultTTL),
			absent: cannotWait, rounds: 1, kinds: waiting, measure: (*stage).idle,
		},
		{
			name: "crash", title: "successor after SIGKILL of the holder",
			columns: []column{{Name: "after expiry ms"}, {Name: "after SIGKILL ms"}, {Name: "never"},
				{Name: "after expiry ms, beside other keys"}, {Name: "after SIGKILL ms, beside other keys"}, {Name: "never, beside other keys"}},
			work: fmt.Sprintf("%d trials each: TTL %s; a process that holds and extends a key is killed at a random moment while another waits for it. "+
				"Expiry is when a quorum of the servers is free. The other columns are with %d other keys that expire on each server. A waiter without the key %s "+
				"after the expiry counts as never, and that time as its result.", sz.crashTrials, sz.crashTTL, sz.others, sz.giveUp),
			absent: cannotWait, rounds: sz.crashTrials, kinds: crashing, all: (*stage).crashes,
		},
		{
			name: "frozen", title: "one server of five stopped with SIGSTOP",
			columns: []column{{Name: "healthy p99 us"}, {Name: "frozen p50 us"}, {Name: "frozen p99 us"}, {Name: "p99 x healthy"},
				{Name: "healthy goroutines"}, {Name: "frozen goroutines"}, {Name: "more goroutines"}, {Name: "frozen memory MiB"},
				{Name: "keys left on the healthy"}},
			work: fmt.Sprintf("Pairs of one goroutine for %s, and at least one, before and after the freeze; then as long with %d goroutines. "+
				"Goroutines and memory (objects and stacks) at their peak, keys while the server is still frozen.", sz.frozen, goroutines),
			absent: map[*rival.Kind]string{rival.Redislock: "one server: it is that one or not", rival.Valkeylock: "one server: it is that one or not"},
			rounds: 1, kinds: frozen, measure: (*stage).freeze,
		},
		{
			name: "stall", title: fmt.Sprintf("leases behind links of %d kB/s, all servers stand still once for %s", stallLink, stall),
			columns: []column{{Name: "leases"}, {Name: "lost"}},
			work: fmt.Sprintf("%d leases with a TTL of %s, held for %s after the stall, extended every third of it; through toxiproxy in this process. "+
				"Lost are those that their holder was told of.", sz.stallLeases, defaultTTL, sz.stallHold),
			absent: map[*rival.Kind]string{rival.Floor: "looks at no answer"},
			rounds: 1, kinds: []*rival.Kind{rival.Tenure, rival.Redsync}, measure: (*stage).stall,
		},
		{
			name: "held", title: "many leases held by one process",
			columns: []column{{Name: "CPU s"}, {Name: "CPU x floor", Of: "CPU s", To: rival.Floor}, {Name: "heap growth MiB"}, {Name: "RSS growth MiB"}, {Name: "goroutines"}},
			work: fmt.Sprintf("%d leases held for %s with a TTL of %s, extended every third of it, in a process of their own; CPU while they are held. "+
				"The floor pipelines its extensions, one goroutine a node. Leases that are extended by hand have a goroutine each.",
				sz.held, sz.hold, sz.heldTTL),
			absent: map[*rival.Kind]string{rival.Redislock: "extended by hand, on one server"},
			rounds: 1, kinds: []*rival.Kind{rival.Floor, rival.Tenure, rival.Redsync, rival.Valkeylock}, measure: (*stage).hold,
		},
		due("due10", 10), due("due1000", sz.due),
	}
}

// chosen returns the rows with the names of a list with commas; all if it is empty.
func chosen(names string, sz size) (some []*row, err error) {
	all := rows(sz)
	if names == "" {
		return all, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(r *row) bool { return r.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("versus: there is no row %q: docs/performance.md has their names", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// stage is the servers and the sizes with which rows run. It is not safe for concurrent use.
type stage struct {
	servers *place.Servers
	size    size
}

// setUp starts the servers and waits until Tenure lets them vote.
func setUp(ctx context.Context, sz size, log io.Writer, opts ...valkeytest.Option) (*stage, error) {
	fleet, err := valkeytest.New(nodes, opts...)
	if err != nil {
		return nil, err
	}
	servers := &place.Servers{Fleet: fleet}
	fmt.Fprintf(log, "servers are up; Tenure's restart gate lets them vote when they are about 14 s old\n")
	if err := servers.AwaitVotes(ctx); err != nil {
		return nil, errors.Join(err, servers.Close())
	}
	return &stage{servers, sz}, nil
}

// load returns the load of the machine. The CPU of the servers counts as this program's own.
func (s *stage) load(ctx context.Context) (stat.Load, bool) {
	l, seen := stat.LoadNow()
	servers, err := s.servers.CPU(ctx)
	l.Own += servers
	return l, seen && err == nil
}

// config returns the configuration of rivals.
func (s *stage) config(ttl time.Duration) rival.Config {
	return rival.Config{URLs: s.servers.URLs(), TTL: ttl}
}

// each calls do for rivals in turn, each time on empty servers.
func (s *stage) each(ctx context.Context, rounds int, kinds []*rival.Kind, do func(k *rival.Kind) error) error {
	return turns(ctx, rounds, kinds, func(k *rival.Kind) error {
		if err := s.servers.Flush(ctx); err != nil {
			return err
		}
		return do(k)
	})
}

// turns calls do for each rival, round after round. Each round begins with another rival, so that
// no rival always comes after the same one.
func turns(ctx context.Context, rounds int, kinds []*rival.Kind, do func(k *rival.Kind) error) error {
	for round := range rounds {
		for i := range kinds {
			k := kinds[(round+i)%len(kinds)]
			if err := errors.Join(ctx.Err(), do(k)); err != nil {
				return fmt.Errorf("%s, round %d: %w", k.Name, round+1, err)
			}
		}
	}
	return nil
}

// enter opens rivals.
func enter(kinds []*rival.Kind, c rival.Config) (rs []rival.Rival, leave func(), err error) {
	leave = func() {
		for _, r := range rs {
			_ = r.Close()
		}
	}
	for _, k := range kinds {
		r, err := k.Open(c)
		if err != nil {
			leave()
			return nil, nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		rs = append(rs, r)
	}
	return rs, leave, nil
}

// atOnce calls a function for each number below n, in a goroutine of its own. It returns the number
// of errors and the first of them: they are mostly the same.
func atOnce(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d of the callers failed; the first: %w", len(errs), errs[0])
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mebi[N int64 | uint64](bytes N) float64 { return float64(bytes) / (1 << 20) }
