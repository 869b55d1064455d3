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
	name        string
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

// fullSize takes about 15 minutes. quickSize takes about five minutes, and shows whether everything
// works.
var (
	fullSize = size{
		name: "full", rounds: 11, few: 3, slice: 350 * time.Millisecond, contended: 3 * time.Second, handover: 2 * time.Second,
		waiter: 10 * time.Second, frozen: 2 * time.Second, slowToo: true,
		crashTrials: 5, crashTTL: 1500 * time.Millisecond, others: 100_000, giveUp: 5 * time.Second,
		held: 10_000, hold: 30 * time.Second, heldTTL: 10 * time.Second, stallLeases: 1000, stallHold: 20 * time.Second, due: 1000,
	}
	quickSize = size{
		name: "quick", rounds: 3, few: 1, slice: 200 * time.Millisecond, contended: time.Second, handover: 1200 * time.Millisecond,
		waiter: 2 * time.Second, frozen: 500 * time.Millisecond, slowToo: true,
		crashTrials: 1, crashTTL: time.Second, others: 20_000, giveUp: 3 * time.Second,
		held: 1000, hold: 3 * time.Second, heldTTL: 3 * time.Second, stallLeases: 1000, stallHold: 20 * time.Second, due: 200,
	}
)

// row is some work, and its measurements.
type row struct {
	name, title string
	columns     []column
	run         func(ctx context.Context, s *stage, b *board) error
}

// rows returns all rows, in the order in which they run.
func rows() []*row {
	return []*row{
		pairRow(), distinctRow(), contendedRow(), handoverRow(), waiterRow(), crashRow(), frozenRow(), stallRow(),
		heldRow(), dueRow("due10", func(size) int { return 10 }), dueRow("due1000", func(sz size) int { return sz.due }),
	}
}

// chosen returns the rows with the names of a list with commas; all if it is empty.
func chosen(names string) (some []*row, err error) {
	all := rows()
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
