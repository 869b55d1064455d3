package orders_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

var quiet = slog.New(slog.DiscardHandler)

func bubble(t *testing.T, test func(t *testing.T, fleet *redlocktest.Fleet)) {
	synctest.Test(t, func(t *testing.T) { test(t, redlocktest.StartPipes(t, 3)) })
}

func open(t *testing.T, fleet *redlocktest.Fleet, identity string) *redlock.Quorum {
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(quiet),
		redlock.WithTTL(4*time.Second), redlock.WithIdentity(identity))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	q.Nodes(t.Context())
	return q
}

// An order is claimed once, whoever else claims it at the same time, later, or from a process that
// begins then. Of several at the same time it is one at most: seldom nobody has it in the end, and
// all learn that it is taken.
func TestClaimOnce(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		var quorums []*redlock.Quorum
		for i := range 5 {
			quorums = append(quorums, open(t, fleet, fmt.Sprint("taker-", i)))
		}
		for round := range 3 {
			id := orders.NewID()
			errs, began := make([]error, len(quorums)), time.Now()
			var work sync.WaitGroup
			for i, q := range quorums {
				work.Go(func() {
					// As takers do, it tries again until it is known who has the order.
					for errs[i] = errNotTried; errs[i] != nil && !errors.Is(errs[i], orders.ErrTaken) && time.Since(began) < time.Minute; {
						errs[i] = orders.Claim(t.Context(), q, id)
						time.Sleep(time.Duration(i+1) * 100 * time.Millisecond)
					}
				})
			}
			work.Wait()
			winner := ""
			for i, err := range errs {
				if err == nil {
					require.Empty(t, winner, "round %d", round)
					winner = fmt.Sprint("taker-", i)
					continue
				}
				require.ErrorIs(t, err, orders.ErrTaken)
			}
			require.NotEmpty(t, winner)

			time.Sleep(10 * time.Second)
			for _, q := range append(quorums, open(t, fleet, "late")) {
				require.ErrorIs(t, orders.Claim(t.Context(), q, id), orders.ErrTaken)
			}
		}
	})
}

// A claim that a quorum does not grant is nobody's, and its error is not ErrTaken.
func TestClaimWithoutAQuorum(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, "taker")
		require.NoError(t, fleet.Node(0).Kill())
		require.NoError(t, fleet.Node(1).Kill())
		err := orders.Claim(t.Context(), q, "id")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, orders.ErrTaken)
	})
}

// taker is a Taker that takes what test says, and counts.
type taker struct {
	*orders.Taker

	accept   func(bulletin.Order) bool // nil for all
	carryOut func(context.Context, bulletin.Order) bulletin.Order

	mu    sync.Mutex
	asked int              // guarded by mu
	took  []bulletin.Order // guarded by mu
}

func (r *taker) start(t *testing.T, q *redlock.Quorum) {
	r.Taker = &orders.Taker{Logger: quiet, Accept: func(o bulletin.Order) (func(context.Context) bulletin.Order, bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked++
		if r.accept != nil && !r.accept(o) {
			return nil, false
		}
		r.took = append(r.took, o)
		return func(ctx context.Context) bulletin.Order { return r.carryOut(ctx, o) }, true
	}}
	r.Start(q)
	t.Cleanup(r.Close)
	time.Sleep(time.Second) // it hears
}

func (r *taker) taken() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.took {
		ids = append(ids, o.ID)
	}
	return ids
}

func (r *taker) timesAsked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func order(id string) bulletin.Order {
	return bulletin.Order{ID: id, Kind: bulletin.RunNow, Target: "job", By: "ann", Within: 10_000}
}

// give tells orders once, and waits until they are heard. Each time they are told anew.
func give(t *testing.T, q *redlock.Quorum, given ...bulletin.Order) {
	t.Helper()
	for _, o := range given {
		e, ok := o.Entry()
		require.True(t, ok)
		post(t, q, e)
	}
}

func post(t *testing.T, q *redlock.Quorum, e bulletin.Entry) {
	t.Helper()
	e.At = time.Now()
	require.NoError(t, board.Of(q).Post(t.Context(), nil, e))
	synctest.Wait()
	time.Sleep(100 * time.Millisecond)
}

// answers are those in the journal, by id.
func answers(t *testing.T, q *redlock.Quorum) map[string][]bulletin.Order {
	t.Helper()
	entries, err := board.Of(q).Journal(t.Context(), bulletin.Orders, bulletin.MaxEntries)
	require.NoError(t, err)
	found := make(map[string][]bulletin.Order)
	for _, e := range entries {
		if o, ok := bulletin.Parse[bulletin.Order](e.Text); ok && o.Result != "" {
			found[o.ID] = append(found[o.ID], o)
		}
	}
	return found
}

// An order is carried out once, however often it is told, also while it is. A node that missed the
// answer gets it when the order comes again; the journal has the answer once.
func TestTakerRepeatsItsAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, operator := open(t, fleet, "taker"), open(t, fleet, "operator")
		r := &taker{carryOut: func(context.Context, bulletin.Order) bulletin.Order {
			time.Sleep(2 * time.Second)
			return bulletin.Order{By: "taker", Result: bulletin.Done, Run: &bulletin.Run{By: "taker", Token: 9}}
		}}
		r.start(t, q)
		o := order("one")
		o.Number = 7
		give(t, operator, o, o)
		require.Equal(t, []string{"one"}, r.taken(), "it goes on")
		time.Sleep(3 * time.Second)
		want := bulletin.Order{
			V: 1, ID: "one", Kind: bulletin.RunNow, Target: "job", Number: 7, By: "taker", Result: bulletin.Done,
			Run: &bulletin.Run{By: "taker", Token: 9},
		}
		require.Equal(t, map[string][]bulletin.Order{"one": {want}}, answers(t, operator))

		fleet.Node(0).FlushAll()
		var heard atomic.Int64
		defer board.Of(operator).Hear(bulletin.Orders, func(e bulletin.Entry) {
			if o, ok := bulletin.Parse[bulletin.Order](e.Text); ok && o.Result != "" {
				heard.Add(1)
			}
		})()
		time.Sleep(time.Second)
		for range 3 {
			give(t, operator, o)
			time.Sleep(time.Second)
		}
		require.EqualValues(t, 3, heard.Load(), "each time")
		require.Equal(t, map[string][]bulletin.Order{"one": {want}}, answers(t, operator))
		require.NoError(t, fleet.Node(1).Kill())
		require.NoError(t, fleet.Node(2).Kill())
		require.Equal(t, map[string][]bulletin.Order{"one": {want}}, answers(t, operator), "the node that had lost it")
		require.Equal(t, []string{"one"}, r.taken())
	})
}

// An order that turns out to be another's is not answered, and the taker is asked again when it is
// told again.
func TestOrderThatWasNotItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, "taker")
		r := &taker{carryOut: func(context.Context, bulletin.Order) bulletin.Order { return bulletin.Order{Detail: "said to nobody"} }}
		r.start(t, q)
		give(t, q, order("one"), order("one"))
		require.Equal(t, []string{"one", "one"}, r.taken())
		require.Empty(t, answers(t, q))
	})
}

// A taker remembers the answers of so many orders, and forgets the oldest.
func TestAnswersThatAreRemembered(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, "taker")
		r := &taker{carryOut: func(context.Context, bulletin.Order) bulletin.Order {
			return bulletin.Order{By: "taker", Result: bulletin.Refused, Detail: "overlap"}
		}}
		r.start(t, q)
		many := func(i int) bulletin.Order {
			o := order(fmt.Sprintf("%02d", i))
			o.Within = time.Hour.Milliseconds()
			return o
		}
		for i := range 65 {
			give(t, q, many(i))
		}
		require.Len(t, r.taken(), 65)
		give(t, q, many(1), many(64))
		require.Len(t, r.taken(), 65)
		give(t, q, many(0))
		require.Len(t, r.taken(), 66)
	})
}

// A taker carries out so many orders at a time. One beyond that is not taken, and is when it is
// told again and there is room.
func TestOrdersAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, "taker")
		free := make(chan struct{})
		r := &taker{carryOut: func(ctx context.Context, _ bulletin.Order) bulletin.Order {
			select {
			case <-free:
			case <-ctx.Done():
			}
			return bulletin.Order{By: "taker", Result: bulletin.Done}
		}}
		r.start(t, q)
		for i := range 20 {
			give(t, q, order(fmt.Sprint(i)))
		}
		require.Len(t, r.taken(), 16)
		require.Equal(t, 16, r.timesAsked())
		require.Empty(t, answers(t, q))
		free <- struct{}{}
		time.Sleep(time.Second)
		give(t, q, order("19"), order("18"))
		require.Equal(t, "19", r.taken()[16])
		require.Len(t, r.taken(), 17)
		close(free)
		time.Sleep(time.Second)
		require.Len(t, answers(t, q), 17)
	})
}

// What came of orders, what is for others, and what is no order are not
// taken.
func TestWhatIsNotTaken(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, "taker")
		r := &taker{
			accept:   func(o bulletin.Order) bool { return o.Kind != bulletin.Resign },
			carryOut: func(context.Context, bulletin.Order) bulletin.Order { return bulletin.Order{Result: bulletin.Done} },
		}
		r.start(t, q)
		answer := order("answer")
		answer.Result = bulletin.Done
		give(t, q, answer)
		for _, text := range []string{
			"", "null", "{}", `"run_now"`, `[{"v":1}]`, `{"v":1,"id":"x"}`, `{"v":1,"kind":"run_now"}`, `{"v":"1","id":"x","kind":"run_now"}`,
			`{"v":0,"id":"x","kind":"run_now","within":1000}`, `{"v":1,"id":"x","kind":"run_now","within":1e300}`,
		} {
			post(t, q, bulletin.Entry{Journal: bulletin.Orders, Text: text, Most: 400, Keep: time.Hour})
		}
		require.Zero(t, r.timesAsked())

		another := order("for another")
		another.Kind = bulletin.Resign
		give(t, q, another)
		require.Equal(t, 1, r.timesAsked())
		require.Empty(t, r.taken())

		newer, err := json.Marshal(map[string]any{"v": 2, "id": "newer", "kind": "run_now", "by": "ann", "within": 1000, "more": []int{1}})
		require.NoError(t, err)
		post(t, q, bulletin.Entry{Journal: bulletin.Orders, Text: string(newer), Most: 400, Keep: time.Hour})
		require.Equal(t, []string{"newer"}, r.taken())
	})
}

// Close ends the context of what is carried out, waits for it and for its answer, and takes nothing
// any more.
func TestCloseWaitsForOrders(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, "taker")
		r := &taker{carryOut: func(ctx context.Context, _ bulletin.Order) bulletin.Order {
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			return bulletin.Order{By: "taker", Result: bulletin.Done}
		}}
		r.start(t, q)
		give(t, q, order("one"), order("two"))
		time.Sleep(time.Minute)
		require.Empty(t, answers(t, q))
		began := time.Now()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			r.Close()
		}()
		time.Sleep(time.Second)
		give(t, q, order("three"))
		select {
		case <-closed:
			t.Error("it did not wait")
		default:
		}
		<-closed
		require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
		found := answers(t, q)
		require.Len(t, found, 2, "answers are told although the taker ends")
		require.Contains(t, found, "one")
		require.Contains(t, found, "two")
		require.Equal(t, []string{"one", "two"}, r.taken())
		r.Close()
	})
}

var errNotTried = errors.New("not tried")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
