package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/stat"
)

// schedule is when pairs begin, whether those before have ended or not: an open loop, as callers
// are that do not know each other.
type schedule struct {
	every time.Duration
	pairs int
}

// newSchedule is a number of pairs a second for some time, evenly spread, and one pair at least.
func newSchedule(perSecond float64, during time.Duration) schedule {
	every := max(time.Duration(float64(time.Second)/perSecond), 1)
	return schedule{every, max(int(during/every), 1)}
}

// at is when a pair is to begin, after the beginning of the first.
func (s schedule) at(pair int) time.Duration { return time.Duration(pair) * s.every }

// due is how many pairs are to have begun by then.
func (s schedule) due(since time.Duration) int { return min(int(since/s.every)+1, s.pairs) }

// openTimes is how long pairs took: from the time at which each was to begin, so that a stall costs
// all that it has kept from beginning (no coordinated omission).
type openTimes struct {
	micros []float64
	failed int
	first  error
}

// openLoop makes pairs as the schedule has them, each with a new key in a goroutine of its own.
// What fails is counted, with the time that it took, and is an error only if everything fails: that
// a rival does not keep up is a result.
func openLoop(ctx context.Context, e *entrant, s schedule) (*openTimes, error) {
	p, err := newPacer()
	if err != nil {
		return nil, err
	}
	defer p.Close()
	t := &openTimes{micros: make([]float64, s.pairs)}
	errs := make([]error, s.pairs)
	var wg sync.WaitGroup
	defer wg.Wait()
	began := time.Now()
	for begun := 0; begun < s.pairs; {
		for due := s.due(time.Since(began)); begun < due; begun++ {
			pair := begun
			wg.Go(func() {
				held, err := e.Try(ctx, "open/"+strconv.Itoa(pair))
				if err == nil {
					err = held.Release(ctx)
				}
				t.micros[pair], errs[pair] = micros(time.Since(began)-s.at(pair)), err
			})
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if d := s.at(begun) - time.Since(began); begun < s.pairs && d > 0 {
			if err := p.wait(d); err != nil {
				return nil, err
			}
		}
	}
	wg.Wait()
	t.count(errs)
	if t.failed == s.pairs {
		return nil, fmt.Errorf("%d of %d pairs failed; the first: %w", t.failed, s.pairs, t.first)
	}
	return t, nil
}

func (t *openTimes) count(errs []error) {
	for _, err := range errs {
		if err != nil {
			t.failed++
		}
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		t.first = errs[i]
	}
}

// quantile is of the times.
func (t *openTimes) quantile(p float64) float64 { return stat.Quantile(t.micros, p) }
