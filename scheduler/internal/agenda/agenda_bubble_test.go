package agenda

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is a wall clock that can be set.
type clock struct{ ahead time.Duration }

func (c *clock) now() time.Time { return time.Now().Add(c.ahead) }

// run runs an agenda in a bubble until the test ends.
func run(t *testing.T, test func(t *testing.T, a *Agenda, c *clock)) {
	synctest.Test(t, func(t *testing.T) {
		c := &clock{}
		a := New(c.now)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { a.Run(ctx); close(ended) }()
		test(t, a, c)
		cancel()
		<-ended
	})
}

func TestEntriesAreWokenAtTheirTimeInOrder(t *testing.T) {
	run(t, func(t *testing.T, a *Agenda, _ *clock) {
		began := time.Now()
		var got []string
		entry := func(name string) *Entry {
			return &Entry{Wake: func(why Why) {
				require.Equal(t, Due, why)
				got = append(got, name+" "+time.Since(began).String())
			}}
		}
		b, c, d := entry("b"), entry("c"), entry("d")
		a.Set(c, began.Add(2500*time.Millisecond))
		a.Set(b, began.Add(time.Hour))
		a.Set(b, began.Add(1500*time.Millisecond)) // earlier than before
		a.Set(d, began.Add(time.Millisecond))
		a.Remove(d)
		a.Remove(d)
		time.Sleep(3 * time.Hour)
		require.Equal(t, []string{"b 1.5s", "c 2.5s"}, got)
		a.Set(d, began) // has passed
		synctest.Wait()
		require.Equal(t, "d 3h0m0s", got[2])
	})
}

// An entry may set itself anew while it is woken, as each job does.
func TestEntrySetsItselfAnew(t *testing.T) {
	run(t, func(t *testing.T, a *Agenda, _ *clock) {
		n, began := 0, time.Now()
		e := &Entry{}
		e.Wake = func(Why) { n++; a.Set(e, began.Add(time.Duration(n)*time.Second)) }
		a.Set(e, began)
		time.Sleep(10500 * time.Millisecond)
		require.Equal(t, 11, n)
	})
}

// Whatever sets the clock, every entry hears of it within a Look, and keeps its time.
func TestStepWakesEveryEntry(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour, "little": 2 * Step, "too little": Step / 2} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, a *Agenda, c *clock) {
				var stepped, due []time.Duration
				at := time.Now().Add(3 * time.Hour)
				began := time.Now()
				for range 3 {
					a.Set(&Entry{Wake: func(why Why) {
						if why == Stepped {
							stepped = append(stepped, time.Since(began))
						} else {
							due = append(due, time.Since(began))
						}
					}}, at)
				}
				time.Sleep(500 * time.Millisecond)
				c.ahead = by
				time.Sleep(5 * time.Hour)
				if name == "too little" {
					require.Empty(t, stepped)
				} else {
					require.Len(t, stepped, 3)
					require.LessOrEqual(t, stepped[2], 1500*time.Millisecond)
				}
				require.Len(t, due, 3)
				require.Equal(t, 3*time.Hour-by, due[0])
			})
		})
	}
}

// Three thousand sleepers cost one timer a second.
func TestSleepersCostNothing(t *testing.T) {
	run(t, func(t *testing.T, a *Agenda, _ *clock) {
		woken := 0
		for i := range 3000 {
			a.Set(&Entry{Wake: func(Why) { woken++ }}, time.Now().Add(time.Hour+time.Duration(i)))
		}
		require.Zero(t, testing.AllocsPerRun(100, func() { a.due(a.Now()); a.next(a.Now()) }))
		time.Sleep(2 * time.Hour)
		require.Equal(t, 3000, woken)
	})
}
