//go:build long

package redlock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A pause with an end that is far away is kept for as long as that, and can be repeated. One that
// nodes would not keep until its end is refused.
func TestPauseUntilFarAway(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		tick := func() error {
			time.Sleep(time.Second)
			lease, err := q.TryAcquire(t.Context(), "key", redlock.WithTick(time.Now(), redlock.AtMostOnce, time.Minute))
			if err == nil {
				finish(t, lease.Complete)
			}
			return err
		}
		require.NoError(t, tick())
		for _, until := range []time.Time{time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)} {
			_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{Until: until})
			var oe *redlock.OptionError
			require.ErrorAs(t, err, &oe)
			require.NoError(t, tick())
		}
		for range 2 {
			for _, until := range []time.Time{time.Now().AddDate(98, 0, 0), {}} {
				_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{Until: until})
				require.NoError(t, err)
				time.Sleep(2 * time.Minute) // which is longer than the numbers are kept
				require.ErrorIs(t, tick(), redlock.ErrPaused)
			}
		}
	})
}

// A pause outlives that each node in turn is emptied, and that runs go on meanwhile.
func TestPauseOutlivesEmptiedNodes(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"key": "key", "all": redlock.AllKeys} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := open(t, fleet)
				running := acquire(t, q, redlock.WithTick(time.Now(), redlock.AtLeastOnce, time.Hour))
				_, err := q.Pause(t.Context(), key, redlock.PauseOptions{})
				require.NoError(t, err)
				time.Sleep(time.Millisecond)
				require.NoError(t, running.Extend(t.Context()))
				require.NoError(t, running.Complete(t.Context()))
				synctest.Wait()
				for range 2 {
					for i := range 3 {
						requirePaused(t, q)
						restart(t, fleet, i)
						time.Sleep(2 * quarantine)
						requirePaused(t, q)
						synctest.Wait()
						time.Sleep(time.Minute)
					}
				}
				require.NoError(t, q.Close())
				time.Sleep(1000 * 24 * time.Hour)
				requirePaused(t, open(t, fleet))
			})
		})
	}
}

// A node that was out of reach when a pause was written, or ended, learns it with the next tick.
func TestPauseIsSpread(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"key": "key", "all": redlock.AllKeys} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := open(t, fleet)
				defer q.KeepSequence("key")() // restores a node that was too slow to know it
				runTick(t, q)
				record := recordKey
				if key == redlock.AllKeys {
					record = "tenure:all:once"
				}
				marked := func(i int, by string) bool {
					text, _ := fleet.Node(i).Get(record)
					return strings.Contains(text, "/"+by+"/")
				}
				freeze(t, fleet, 2)
				p, err := q.Pause(t.Context(), key, redlock.PauseOptions{By: "Ann"})
				require.NoError(t, err)
				require.Equal(t, 2, p.Nodes)
				thaw(t, fleet, 2)
				require.False(t, marked(2, "Ann"))
				for tries := 0; !marked(2, "Ann"); tries++ { // a node that answers last may not be asked at all
					require.Less(t, tries, 5)
					requirePaused(t, q)
					synctest.Wait()
					time.Sleep(time.Second)
				}
				freeze(t, fleet, 0)
				_, err = q.Resume(t.Context(), key, redlock.PauseOptions{By: "Bob"})
				require.NoError(t, err)
				thaw(t, fleet, 0)
				time.Sleep(time.Second)
				for tries := 0; !marked(0, "Bob"); tries++ {
					require.Less(t, tries, 5)
					runTick(t, q)
					time.Sleep(time.Second)
				}
				require.True(t, marked(1, "Bob"))
				require.True(t, marked(2, "Bob"))
			})
		})
	}
}

// A pause that ends earlier than one before it lifts that, and not for ticks that it has skipped.
func TestPauseIsNotLiftedBackwards(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		skipped := time.Now()
		_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{})
		require.NoError(t, err)
		time.Sleep(time.Second)
		var oe *redlock.OptionError
		_, err = q.Pause(t.Context(), "key", redlock.PauseOptions{Until: time.Now().Add(-time.Millisecond)})
		require.ErrorAs(t, err, &oe, "it would pause nothing")
		p, err := q.Pause(t.Context(), "key", redlock.PauseOptions{Until: time.Now().Add(time.Second)})
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.False(t, p.Active(time.Now()))
		_, err = q.TryAcquire(t.Context(), "key", redlock.WithTick(skipped, redlock.AtMostOnce, time.Hour))
		require.ErrorIs(t, err, redlock.ErrPaused)
		runTick(t, q)
	})
}

// Without a pause that a quorum knows of, a resume skips no tick that is late, and no more than an
// earlier pause has skipped; but it takes back what a pause has left that few nodes know of.
func TestResumeWithoutAPause(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		late := time.Now()
		time.Sleep(time.Second)
		for range 2 {
			p, err := q.Resume(t.Context(), "key", redlock.PauseOptions{By: "Ann"})
			require.NoError(t, err)
			require.True(t, p.Resumed)
			require.False(t, p.Active(late))
		}
		l, err := q.TryAcquire(t.Context(), "key", redlock.WithTick(late, redlock.AtMostOnce, time.Hour))
		require.NoError(t, err)
		require.NoError(t, l.Complete(t.Context()))

		time.Sleep(time.Second)
		skipped := time.Now()
		_, err = q.Pause(t.Context(), "key", redlock.PauseOptions{})
		require.NoError(t, err)
		_, err = q.Resume(t.Context(), "key", redlock.PauseOptions{})
		require.NoError(t, err)
		time.Sleep(time.Second)
		late = time.Now()
		time.Sleep(time.Second)
		_, err = q.Resume(t.Context(), "key", redlock.PauseOptions{})
		require.NoError(t, err)
		_, err = q.TryAcquire(t.Context(), "key", redlock.WithTick(skipped, redlock.AtMostOnce, time.Hour))
		require.ErrorIs(t, err, redlock.ErrPaused)
		l, err = q.TryAcquire(t.Context(), "key", redlock.WithTick(late, redlock.AtMostOnce, time.Hour))
		require.NoError(t, err)
		require.NoError(t, l.Complete(t.Context()))
	})
}

// Two who pause and resume at once follow one another; a dead one is waited for.
func TestTwoWhoPauseAtOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		quorums := []*redlock.Quorum{open(t, fleet), open(t, fleet)}
		versions := make(chan redlock.Pause, 10)
		for i := range 10 {
			go func() {
				p, err := quorums[i%2].Resume(context.Background(), "key", redlock.PauseOptions{By: strconv.Itoa(i)})
				if err != nil {
					p.By = err.Error()
				}
				versions <- p
			}()
		}
		last, seen := redlock.Pause{}, make(map[uint64]bool)
		for range 10 {
			p := <-versions
			require.NotZero(t, p.Version, p.By)
			require.False(t, seen[p.Version])
			seen[p.Version] = true
			if p.Version > last.Version {
				last = p
			}
		}
		is, err := quorums[0].Paused(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, last.Version, is.Version)
		require.Equal(t, last.By, is.By)
	})
}

// Without a quorum nothing is done, and it is not known what was when too few nodes answered later.
func TestPauseWithoutAQuorum(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		freeze(t, fleet, 0, 1)
		_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{})
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, redlock.ErrUnknown)
		_, err = q.Paused(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
	})
}

func TestPauseOptions(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		for _, o := range []redlock.PauseOptions{
			{By: strings.Repeat("x", redlock.MaxPauseText+1)}, {Reason: "\xff"}, {Until: time.UnixMilli(-1)}, {Until: time.UnixMilli(redlock.MaxSequence)},
		} {
			_, err := q.Pause(t.Context(), "key", o)
			var oe *redlock.OptionError
			require.ErrorAs(t, err, &oe)
		}
		for _, key := range []string{"}", ""} {
			_, err := q.Pause(t.Context(), key, redlock.PauseOptions{})
			require.Error(t, err, "%q", key)
		}
		require.NoError(t, q.Close())
		_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{})
		require.ErrorIs(t, err, redlock.ErrClosed)
	})
}

// once is a tracer that does something before the first request of one kind is sent.
func once(op redlock.Op, do func()) redlock.Option {
	return redlock.WithTracer(&before{op: op, do: sync.OnceFunc(do)})
}

// A pause that reached too few nodes may come into force or not.
func TestPauseOnOneNodeIsNone(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		runTick(t, open(t, fleet))
		q := open(t, fleet, once(redlock.OpPause, func() { freeze(t, fleet, 0, 1) }))
		_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{})
		require.ErrorIs(t, err, redlock.ErrUnknown)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		thaw(t, fleet, 0, 1)
	})
}

// What was written after the lease was lost may be older than what another one has written.
func TestPauseNeedsItsLease(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		runTick(t, open(t, fleet))
		q := open(t, fleet, redlock.WithNodeTimeout(ttl/4), redlock.WithExtendInterval(ttl/20), once(redlock.OpPause, func() {
			for _, n := range fleet.Nodes() {
				set(t, n, "tenure:pause:{key}", "another/"+strings.Repeat("A", 22))
			}
			time.Sleep(ttl / 5)
		}))
		_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{})
		require.ErrorIs(t, err, redlock.ErrUnknown)
		require.ErrorIs(t, err, redlock.ErrLost)
	})
}

// setMark puts the mark of a pause into the record of "key" on a node.
func setMark(t *testing.T, n *redlocktest.Node, mark string) {
	t.Helper()
	text, ok := n.Get(recordKey)
	require.True(t, ok)
	fields := strings.SplitN(text, " ", 15)
	fields[12] = mark
	set(t, n, recordKey, strings.Join(fields, " "))
}

// An operator whose lease is lost does not win over a later mark: it is another one's, perhaps.
func TestLaterMarkStandsWithoutTheLease(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		runTick(t, open(t, fleet))
		later := fmt.Sprintf("%d/9007199254740991/1/Bob/", time.Now().Add(time.Hour).UnixMicro())
		q := open(t, fleet, redlock.WithNodeTimeout(ttl/4), redlock.WithExtendInterval(ttl/20), once(redlock.OpPause, func() {
			for _, n := range fleet.Nodes() {
				set(t, n, "tenure:pause:{key}", "another/"+strings.Repeat("A", 22))
				setMark(t, n, later)
			}
			time.Sleep(ttl / 5)
		}))
		_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{By: "Ann"})
		require.ErrorIs(t, err, redlock.ErrUnknown)
		require.ErrorContains(t, err, "a node has a later mark")
		for _, n := range fleet.Nodes() {
			text, _ := n.Get(recordKey)
			require.Contains(t, text, later)
		}
	})
}

// A mark that is ahead of the clocks is passed on if a quorum has it: a pause may have been given
// it while counters led the clocks.
func TestMarkOfAQuorumIsSpread(t *testing.T) {
	for nodes := 1; nodes <= 2; nodes++ {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet)
			for range 3 { // until all nodes know the sequence
				runTick(t, q)
				synctest.Wait()
				time.Sleep(time.Second)
			}
			ahead := fmt.Sprintf("%d/9007199254740991/1/Ann/", time.Now().Add(time.Hour).UnixMicro())
			for i := range nodes {
				setMark(t, fleet.Node(i), ahead)
			}
			for range 5 {
				time.Sleep(time.Second)
				l, err := q.TryAcquire(t.Context(), "key", tick())
				if err == nil {
					finish(t, l.Complete)
				} else {
					require.ErrorIs(t, err, redlock.ErrPaused)
				}
				synctest.Wait()
			}
			text, _ := fleet.Node(2).Get(recordKey)
			require.Equal(t, nodes == 2, strings.Contains(text, ahead), text)
		})
	}
}

// A node that is restored gets no mark that is ahead of the clocks and lifts a pause, from one node
// alone; but one that pauses, because it may be somebody's.
func TestDamagedMarkIsNotRestored(t *testing.T) {
	for _, floor := range []string{"0", "9007199254740991"} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet)
			for range 3 { // until all nodes know the sequence
				runTick(t, q)
				synctest.Wait()
				time.Sleep(time.Second)
			}
			if floor == "0" {
				_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{By: "Ann"})
				require.NoError(t, err)
			}
			setMark(t, fleet.Node(0), fmt.Sprintf("%d/%s/1/Bob/", time.Now().Add(23*time.Hour).UnixMicro(), floor))
			restart(t, fleet, 2)
			time.Sleep(2 * quarantine)
			for range 5 {
				l, err := q.TryAcquire(t.Context(), "key", tick())
				if err == nil {
					require.NotEqual(t, "0", floor, "nobody has resumed")
					finish(t, l.Complete)
				} else {
					require.ErrorIs(t, err, redlock.ErrPaused)
				}
				synctest.Wait()
				time.Sleep(time.Second)
			}
			text, _ := fleet.Node(2).Get(recordKey)
			require.Equal(t, floor != "0", strings.Contains(text, "/Bob/"), text)
		})
	}
}

// A pause waits from the last answer that it counts, and not from when it began.
func TestPauseWaitsFromTheLastAnswer(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		const trip = ttl / 20
		var sent time.Time
		q := open(t, fleet, redlock.WithNodeTimeout(ttl/4), once(redlock.OpPause, func() { sent = time.Now() }))
		runTick(t, q)
		for _, n := range fleet.Nodes() {
			n.SetDelay(trip / 2)
		}
		_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{})
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(sent), trip+ttl/2)
	})
}

// A tick whose acquisition took longer than a pause waits is not granted, however long its TTL is.
func TestTickThatTookTooLong(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithTTL(time.Minute), redlock.WithMaxTTL(time.Minute), redlock.WithNodeTimeout(15*time.Second))
		runTick(t, q)
		for _, n := range fleet.Nodes() {
			n.SetDelay(3 * time.Second) // a way
		}
		_, err := q.TryAcquire(t.Context(), "key", tick())
		require.ErrorIs(t, err, redlock.ErrTimeout)
		time.Sleep(time.Minute)
		l, err := q.TryAcquire(t.Context(), "key")
		require.NoError(t, err, "what is no tick may take half of its TTL")
		require.NoError(t, l.Release(t.Context()))
	})
}

// One node that has not heard that a pause is over skips no tick, although another one is down.
func TestOneRefusalSkipsNoTick(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		runTick(t, q)
		_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{})
		require.NoError(t, err)
		paused, _ := fleet.Node(0).Get(recordKey)
		_, err = q.Resume(t.Context(), "key", redlock.PauseOptions{})
		require.NoError(t, err)
		time.Sleep(time.Second)
		set(t, fleet.Node(0), recordKey, paused)
		freeze(t, fleet, 1)
		at := tick()
		var l *redlock.Lease
		for range 5 {
			if l, err = q.TryAcquire(t.Context(), "key", at); err == nil {
				break
			}
			require.NotErrorIs(t, err, redlock.ErrPaused)
			time.Sleep(time.Second)
		}
		require.NoError(t, err)
		require.NoError(t, l.Complete(t.Context()))
		thaw(t, fleet, 1)
	})
}

// A pause of all outlives restarts one after the other also where nothing asks for a tick.
func TestIdlePauseOutlivesEmptiedNodes(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"key": "key", "all": redlock.AllKeys} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := open(t, fleet)
				defer q.KeepSequence("key")()
				runTick(t, q)
				_, err := q.Pause(t.Context(), key, redlock.PauseOptions{})
				require.NoError(t, err)
				for i := range 3 {
					restart(t, fleet, i)
					time.Sleep(time.Minute)
				}
				requirePaused(t, q)
			})
		})
	}
}

// The node that answers last, which is no longer waited for, learns of a pause all the same.
func TestPauseIsSpreadToTheSlowNode(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"key": "key", "all": redlock.AllKeys} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := open(t, fleet)
				defer q.KeepSequence("key")()
				runTick(t, q)
				time.Sleep(time.Minute)
				freeze(t, fleet, 2)
				_, err := q.Pause(t.Context(), key, redlock.PauseOptions{By: "Ann"})
				require.NoError(t, err)
				thaw(t, fleet, 2)
				time.Sleep(time.Second)
				fleet.Node(2).SetDelay(10 * time.Millisecond)
				record := recordKey
				if key == redlock.AllKeys {
					record = "tenure:all:once"
				}
				// A tick that the others refuse before it has gone to the slow one teaches it
				// nothing.
				text := ""
				for range 20 {
					requirePaused(t, q)
					synctest.Wait()
					time.Sleep(time.Second)
					if text, _ = fleet.Node(2).Get(record); strings.Contains(text, "/Ann/") {
						return
					}
				}
				require.Contains(t, text, "/Ann/")
			})
		})
	}
}

// A mark whose version nobody can have been given is none: it pauses nothing, is not restored to
// other nodes, and is in no pause's way.
func TestMarkOfTheFutureIsNone(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		defer q.KeepSequence("key")()
		runTick(t, q)
		time.Sleep(time.Second)
		_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{By: "Ann"})
		require.NoError(t, err)
		forge := func(nodes ...int) {
			for _, i := range nodes {
				record, _ := fleet.Node(i).Get(recordKey)
				fields := strings.Split(record, " ")
				require.Len(t, fields, 15)
				fields[12] = "9007199254740991/0/0/x/"
				set(t, fleet.Node(i), recordKey, strings.Join(fields, " "))
			}
		}
		forge(0, 1)
		requirePaused(t, q)
		restart(t, fleet, 2)
		time.Sleep(2 * quarantine)
		requirePaused(t, q)
		synctest.Wait()
		time.Sleep(time.Second)
		record, _ := fleet.Node(2).Get(recordKey)
		require.Contains(t, record, "/Ann/")
		forge(0, 1, 2, 3, 4)
		time.Sleep(time.Millisecond)
		runTick(t, q)
		_, err = q.Pause(t.Context(), "key", redlock.PauseOptions{By: "Bob"})
		require.NoError(t, err)
		require.Equal(t, "Bob", requirePaused(t, q).By)
	})
}
