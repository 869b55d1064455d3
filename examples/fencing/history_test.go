package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// write is one write that a test made, and between which two events of the test it was made.
type write struct {
	token      uint64
	balance    int64
	begun, end int64
	refused    bool
}

// history is the writes to one account.
type history struct {
	events atomic.Int64
	mu     sync.Mutex
	writes []write // guarded by mu
}

// set writes and remembers how it went. An error that is no refusal is returned.
func (h *history) set(s store, id string, balance int64, token uint64, t *rapid.T) error {
	w := write{token: token, balance: balance, begun: h.events.Add(1)}
	err := s.set(t.Context(), id, balance, token)
	w.end = h.events.Add(1)
	if w.refused = errors.Is(err, errStale); err != nil && !w.refused {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, w)
	return nil
}

// check fails unless some order of the writes explains all: one that had to come after another is
// refused if its token is smaller than one that was accepted before it began, and no write is
// refused without a greater token that could have been there. The last balance is one that the
// greatest token wrote, and not an earlier one of it.
func (h *history) check(final int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var greatest uint64
	for _, w := range h.writes {
		greatest = max(greatest, w.token)
	}
	explained := false
	for i, w := range h.writes {
		reason := false
		for j, other := range h.writes {
			if i == j || other.refused || other.token <= w.token {
				continue
			}
			if !w.refused && other.end < w.begun {
				return fmt.Errorf("%+v was accepted after %+v", w, other)
			}
			reason = reason || other.begun < w.end
		}
		if w.refused && !reason {
			return fmt.Errorf("%+v was refused, and nothing greater had come", w)
		}
		if !w.refused && w.token == greatest && w.balance == final {
			explained = true
			for _, other := range h.writes {
				if other.token == greatest && other.begun > w.end {
					return fmt.Errorf("the balance is of %+v, and %+v came after it", w, other)
				}
			}
		}
	}
	if !explained {
		return fmt.Errorf("the balance is %d, which the greatest token %d did not write: %+v", final, greatest, h.writes)
	}
	return nil
}

// writersProperty lets writers write to one account at the same time, each with its tokens in any
// order.
func writersProperty(stores []store) func(t *rapid.T) {
	var cases atomic.Int64
	return func(t *rapid.T) {
		id := fmt.Sprintf("case-%d", cases.Add(1))
		tokens := rapid.SliceOfN(rapid.SliceOfN(rapid.Uint64Range(1, 5), 1, 4), 2, 5).Draw(t, "tokens of each writer")
		var h history
		var balances atomic.Int64
		var writers sync.WaitGroup
		failures := make([]error, len(tokens))
		for i, mine := range tokens {
			writers.Go(func() {
				for _, token := range mine {
					if failures[i] = h.set(stores[i%len(stores)], id, balances.Add(1), token, t); failures[i] != nil {
						return
					}
				}
			})
		}
		writers.Wait()
		if err := errors.Join(failures...); err != nil {
			t.Fatal(err)
		}
		final, err := stores[0].balance(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.check(final); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWritersNeverGoBackwards(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		file := t.TempDir() + "/accounts.db"
		// Two handles on a file are two processes to SQLite.
		rapid.Check(t, writersProperty([]store{openTest(t, file), openTest(t, file)}))
	})
	t.Run("HTTP", func(t *testing.T) {
		file := t.TempDir() + "/accounts.db"
		rapid.Check(t, writersProperty([]store{serveTest(t, openTest(t, file)), serveTest(t, openTest(t, file))}))
	})
}

// What check finds, in histories that are wrong.
func TestHistoryIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		writes []write
		final  int64
		wrong  bool
	}{
		"in order":               {writes: []write{{1, 10, 1, 2, false}, {2, 20, 3, 4, false}}, final: 20},
		"equal tokens":           {writes: []write{{1, 10, 1, 2, false}, {1, 20, 3, 4, false}}, final: 20},
		"stale refused":          {writes: []write{{2, 10, 1, 2, false}, {1, 20, 3, 4, true}}, final: 10},
		"stale at the same time": {writes: []write{{2, 10, 1, 4, false}, {1, 20, 2, 3, false}}, final: 10},
		"stale accepted":         {writes: []write{{2, 10, 1, 2, false}, {1, 20, 3, 4, false}}, final: 10, wrong: true},
		"stale remains":          {writes: []write{{2, 10, 1, 4, false}, {1, 20, 2, 3, false}}, final: 20, wrong: true},
		"refused for nothing":    {writes: []write{{2, 10, 3, 4, false}, {1, 20, 1, 2, true}}, final: 10, wrong: true},
		"equal refused":          {writes: []write{{1, 10, 1, 2, false}, {1, 20, 3, 4, true}}, final: 10, wrong: true},
		"earlier one remains":    {writes: []write{{1, 10, 1, 2, false}, {1, 20, 3, 4, false}}, final: 10, wrong: true},
	} {
		h := history{writes: tc.writes}
		if err := h.check(tc.final); (err != nil) != tc.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}
