//go:build long

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// pausable are the keys of pauses that keep the ticks of "key" from being granted.
var pausable = map[string]string{"key": "key", "all": redlock.AllKeys}

// ofPause is the key of the record that has the mark of a pause.
func ofPause(key string) string {
	if key == redlock.AllKeys {
		return "tenure:all:once"
	}
	return lockKey(key) + ":once"
}

// marked reports whether a node has the mark that somebody has written.
func (s *servers) marked(node int, key, by string) bool {
	s.t.Helper()
	text, _ := s.Node(node).Do(s.t, "GET", ofPause(key)).ToString()
	return strings.Contains(text, "/"+by+"/")
}

// ran is a tick that was granted.
type ran struct {
	key            string
	began, granted time.Time
}

// busy are replicas that ask for tick after tick.
type busy struct {
	work sync.WaitGroup
	stop context.CancelFunc

	mu   sync.Mutex
	ran  []ran // guarded by mu
	asks int   // guarded by mu; that were refused because of a pause
}

// startBusy has replicas ask for ticks of keys until the test ends, each in so many goroutines.
func startBusy(t *testing.T, goroutines int, keys []string, qs ...*redlock.Quorum) *busy {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	b := &busy{stop: stop}
	t.Cleanup(b.end)
	for _, q := range qs {
		for i := range goroutines {
			b.work.Go(func() {
				for n := i; ctx.Err() == nil; n++ {
					key, began := keys[n%len(keys)], time.Now()
					l, err := q.TryAcquire(ctx, key, redlock.WithTick(began, redlock.AtMostOnce, time.Hour))
					granted := time.Now()
					b.mu.Lock()
					if err == nil {
						b.ran = append(b.ran, ran{key, began, granted})
					} else if errors.Is(err, redlock.ErrPaused) {
						b.asks++
					}
					b.mu.Unlock()
					if err == nil {
						_ = l.Complete(context.WithoutCancel(ctx))
					}
					time.Sleep(pollTick)
				}
			})
		}
	}
	return b
}

func (b *busy) end() {
	b.stop()
	b.work.Wait()
}

func (b *busy) count() (granted, paused int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ran), b.asks
}

// requireRuns waits until more ticks are granted.
func (b *busy) requireRuns(t *testing.T) {
	t.Helper()
	before, _ := b.count()
	require.Eventually(t, func() bool { n, _ := b.count(); return n > before+3 }, 3*longTTL, pollTick, "no tick is granted")
}

// requireAsks waits until more ticks are refused because of a pause.
func (b *busy) requireAsks(t *testing.T) {
	t.Helper()
	_, before := b.count()
	require.Eventually(t, func() bool { _, n := b.count(); return n > before+3 }, 3*longTTL, pollTick, "no tick is refused because of a pause")
}

// during is how many acquisitions of a key, or of all, began or ended between two moments and were
// granted.
func (b *busy) during(key string, from, to time.Time) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.ran {
		if key != redlock.AllKeys && r.key != key {
			continue
		}
		if r.granted.After(from) && r.granted.Before(to) || r.began.After(from) && r.began.Before(to) {
			n++
		}
	}
	return n
}

// pauseUntilDone pauses on servers that may be too busy to answer in time.
func pauseUntilDone(t *testing.T, q *redlock.Quorum, key string, o redlock.PauseOptions) (p redlock.Pause) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var err error
		p, err = q.Pause(t.Context(), key, o)
		require.NoError(c, err)
	}, 3*longTTL, pollTick)
	return p
}

func resumeUntilDone(t *testing.T, q *redlock.Quorum, key string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := q.Resume(t.Context(), key, redlock.PauseOptions{By: "Bob"})
		require.NoError(c, err)
	}, 3*longTTL, pollTick)
}

// replicas of a job that keep what it has come to.
func (s *servers) replicas(n int) []*redlock.Quorum {
	s.t.Helper()
	qs := make([]*redlock.Quorum, n)
	for i := range qs {
		qs[i] = s.gated(redlock.WithIdentity(fmt.Sprint("replica ", i)))
		qs[i].KeepSequence("key")
	}
	return qs
}

// A job is paused while three replicas run it. All servers are restarted without their data, each
// when the one before knows again; all replicas are replaced; and nothing is granted until the job
// is resumed.
func TestPauseOutlivesAllServersAndReplicas(t *testing.T) {
	t.Parallel()
	for name, key := range pausable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const patience = 2 * time.Minute
			s := startAged(t, 3)
			old := s.replicas(3)
			jobs := startBusy(t, 1, []string{"key"}, old...)
			jobs.requireRuns(t)
			pauseUntilDone(t, old[0], key, redlock.PauseOptions{By: "Ann", Reason: "a migration"})
			paused := time.Now()
			jobs.requireAsks(t)
			for _, i := range s.all() {
				require.Eventually(t, func() bool { return s.marked(i, key, "Ann") }, patience, pollTick, "node %d never learns of the pause", i)
			}
			for _, i := range s.all() {
				s.restart(i)
				require.Eventually(t, func() bool { return s.marked(i, key, "Ann") }, patience, pollTick, "node %d is not restored", i)
				left, err := s.Node(i).Do(t, "PTTL", ofPause(key)).AsInt64()
				require.NoError(t, err)
				require.Greater(t, left, (99 * 365 * day).Milliseconds(), "a pause without an end does not expire")
			}
			jobs.requireAsks(t)
			jobs.end()
			require.Zero(t, jobs.during(key, paused, time.Now()))
			for _, q := range old {
				require.NoError(t, q.Close())
			}

			fresh := s.replicas(3)
			jobs = startBusy(t, 1, []string{"key"}, fresh...)
			jobs.requireAsks(t)
			n, _ := jobs.count()
			require.Zero(t, n)
			p, err := fresh[1].Paused(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, "Ann", p.By)
			require.Equal(t, "a migration", p.Reason)
			require.True(t, p.Active(time.Now().Add(day)))
			resumeUntilDone(t, fresh[2], key)
			jobs.requireRuns(t)
		})
	}
}

// A pause that is on disk outlives that all servers are restarted at once.
func TestPauseIsRememberedOnDisk(t *testing.T) {
	t.Parallel()
	for name, key := range pausable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3, valkeytest.WithPersistence())
			q := s.replicas(1)[0]
			pauseUntilDone(t, q, key, redlock.PauseOptions{By: "Ann"})
			require.NoError(t, q.Close())
			for _, i := range s.all() {
				require.NoError(t, s.Node(i).Restart(true))
			}
			q = s.replicas(1)[0]
			jobs := startBusy(t, 1, []string{"key"}, q)
			jobs.requireAsks(t)
			n, _ := jobs.count()
			require.Zero(t, n)
			resumeUntilDone(t, q, key)
			jobs.requireRuns(t)
		})
	}
}

// Whatever is under way at the moment of a pause: when that has returned, nothing is granted before
// it is resumed. One of the nodes stands still now and then.
func TestNothingIsGrantedAfterAPause(t *testing.T) {
	t.Parallel()
	const pauses = 50
	s := startServers(t, 3)
	qs := make([]*redlock.Quorum, 5)
	for i := range qs {
		qs[i] = s.open(redlock.WithMaxTTL(serverTTL), redlock.WithNodeTimeout(serverTTL/4))
	}
	keys := []string{"key", "other", "third"}
	jobs := startBusy(t, 3, keys, qs...)
	jobs.requireRuns(t)
	var still sync.WaitGroup
	stop := make(chan struct{})
	still.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(serverTTL / 5):
				assert.NoError(t, s.Node(i%3).Freeze())
				time.Sleep(serverTTL / 8)
				assert.NoError(t, s.Node(i%3).Thaw())
			}
		}
	})
	type window struct {
		key      string
		from, to time.Time
	}
	var windows []window
	for i := range pauses {
		key := []string{redlock.AllKeys, "key"}[i%2]
		_, err := qs[i%len(qs)].Pause(t.Context(), key, redlock.PauseOptions{By: strconv.Itoa(i)})
		from := time.Now()
		time.Sleep(20 * time.Millisecond)
		if err == nil {
			windows = append(windows, window{key, from, time.Now()})
		}
		require.Eventually(t, func() bool {
			_, err := qs[(i+1)%len(qs)].Resume(t.Context(), key, redlock.PauseOptions{})
			return err == nil
		}, longTTL, pollTick)
	}
	close(stop)
	still.Wait()
	resumeUntilDone(t, qs[0], redlock.AllKeys)
	resumeUntilDone(t, qs[0], "key")
	jobs.requireRuns(t)
	jobs.end()
	granted, refused := jobs.count()
	t.Logf("%d of %d pauses; %d ticks granted, %d refused", len(windows), pauses, granted, refused)
	require.Greater(t, len(windows), pauses/5)
	for _, w := range windows {
		require.Zero(t, jobs.during(w.key, w.from, w.to))
	}
}

// Of operators that pause and resume at once the last one's word stands, on all nodes.
func TestOperatorsAtOnce(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	qs := []*redlock.Quorum{s.open(), s.open(), s.open()}
	var work sync.WaitGroup
	var last atomic.Uint64
	for i, q := range qs {
		work.Go(func() {
			for n := range 10 {
				p, err := q.Resume(t.Context(), "key", redlock.PauseOptions{By: fmt.Sprint(i, ".", n)})
				if assert.NoError(t, err) {
					for was := last.Load(); p.Version > was && !last.CompareAndSwap(was, p.Version); was = last.Load() {
					}
				}
			}
		})
	}
	work.Wait()
	p, err := qs[0].Paused(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, last.Load(), p.Version)
	for _, i := range s.all() {
		require.Eventually(t, func() bool { return s.marked(i, "key", p.By) }, longTTL, pollTick, "node %d", i)
	}
}

// operatorEnv has a process of the next test's be the one that pauses.
const operatorEnv = "TENURE_TEST_OPERATOR"

// A pause whose process is killed in the middle is in force or it is not. In either case it can be
// repeated, and lifted.
func TestOperatorIsKilled(t *testing.T) {
	if urls := os.Getenv(operatorEnv); urls != "" {
		q, err := redlock.Open(strings.Split(urls, ","), redlock.WithTTL(serverTTL), redlock.WithMaxTTL(serverTTL), redlock.WithoutRestartGate(),
			redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		awaitAnswers(t, q)
		fmt.Println("pauses")
		time.Sleep(pollTick)
		_, _ = q.Pause(t.Context(), "key", redlock.PauseOptions{By: "Ann"})
		time.Sleep(longTTL)
		return
	}
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithMaxTTL(serverTTL))
	in, written := 0, 0
	for i := range 8 {
		cmd, err := child.Self(operatorEnv + "=" + strings.Join(s.URLs(), ","))
		require.NoError(t, err)
		cmd.Args = append(cmd.Args, "-test.run", "^TestOperatorIsKilled$")
		pauses := make(chan struct{})
		cmd.Stdout = child.Lines(func(line string) {
			if line == "pauses" {
				close(pauses)
			}
		})
		process, err := child.Start(cmd)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, process.Kill()) })
		receive(t, pauses, 3*longTTL, "the operator never begins")
		time.Sleep(time.Duration(i) * time.Millisecond)
		require.NoError(t, process.Kill())
		for i := range s.Nodes() {
			if s.marked(i, "key", "Ann") {
				written++
			}
		}
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			l, err := q.TryAcquire(t.Context(), "key", tick())
			if err == nil {
				require.NoError(c, l.Complete(t.Context()))
				return
			}
			require.ErrorIs(c, err, redlock.ErrPaused)
			in++
		}, longTTL, pollTick, "neither nor")
		p := pauseUntilDone(t, q, "key", redlock.PauseOptions{By: "Cid"})
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			_, err := q.TryAcquire(t.Context(), "key", tick())
			require.ErrorIs(c, err, redlock.ErrPaused)
		}, longTTL, pollTick)
		is, err := q.Paused(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, p.Version, is.Version)
		resumeUntilDone(t, q, "key")
	}
	t.Logf("%d of 8 were in force, on %d nodes in all", in, written)
}

// A node that was down during a pause knows it when it votes again, with its old data or not. One
// that was out of reach of the end of a pause learns that with the ticks that follow, also while
// another node is down.
func TestPauseReachesANodeThatWasAway(t *testing.T) {
	t.Parallel()
	for name, key := range pausable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3, valkeytest.WithPersistence())
			q := s.replicas(1)[0]
			jobs := startBusy(t, 1, []string{"key"}, q)
			jobs.requireRuns(t)
			s.kill(2)
			p := pauseUntilDone(t, q, key, redlock.PauseOptions{By: "Ann"})
			require.Equal(t, 2, p.Nodes)
			require.NoError(t, s.Node(2).Restart(true))
			require.Eventually(t, func() bool { return s.marked(2, key, "Ann") }, 6*longTTL, pollTick)
			jobs.requireAsks(t)
			before, err := s.Node(0).Do(t, "GET", ofPause(key)).ToString()
			require.NoError(t, err)
			resumeUntilDone(t, q, key)
			s.do([]string{"SET", ofPause(key), before}, 0)
			requireVotes(t, q, 2, longTTL)
			s.kill(1)
			jobs.requireRuns(t)
			require.Eventually(t, func() bool { return s.marked(0, key, "Bob") }, 6*longTTL, pollTick)
		})
	}
}

// An idle job asks for no more where nothing is paused: a tick is one call a node.
func TestTicksCostWhatOthersCost(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	calls := func(opts ...redlock.LeaseOption) (n [3]int64) {
		l := s.hold(q, "key", opts...)
		require.NoError(t, l.Complete(t.Context()))
		s.requireFree(longTTL, "not released")
		s.resetStats()
		if opts != nil {
			opts = []redlock.LeaseOption{redlock.WithTick(time.Now(), redlock.AtMostOnce, time.Hour)}
		}
		l = s.hold(q, "key", opts...)
		for i := range n {
			n[i] = s.own(i)["evalsha"]
		}
		require.NoError(t, l.Complete(t.Context()))
		s.requireFree(longTTL, "not released")
		return n
	}
	require.Equal(t, [3]int64{1, 1, 1}, calls(tick()))
}

// What somebody wrote in the place of a mark costs the key at most, and not for longer than until
// the next pause.
func TestHostileMarks(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL), redlock.WithMaxTTL(longTTL))
	far := strconv.Itoa(redlock.MaxSequence)
	for name, mark := range map[string]string{
		"none":             "",
		"huge":             strings.Repeat("9", 5000) + "/1/1/a/b",
		"huge floor":       "1/" + strings.Repeat("9", 400) + "/1/a/b",
		"above the exact":  "9007199254740992/9007199254740992/9007199254740992/a/b",
		"16 digits":        "9999999999999999/9999999999999999/1/a/b",
		"slashes":          strings.Repeat("/", 5000),
		"slashes in texts": "1/" + far + "/1/a/b/c/d",
		"long texts":       "1/" + far + "/1/" + strings.Repeat("x", 5000) + "/" + strings.Repeat("y", 5000),
		"escapes":          "1/" + far + "/1/%zz/%",
		"no UTF-8":         "1/" + far + "/1/\xff\xfe/%ff%fe",
		"NUL":              "1/" + far + "/1/\x00/\x00",
		"negative":         "-1/-1/-1/a/b",
		"fields missing":   "1/" + far,
		"no numbers":       "a/b/c/d/e",
		"floats":           "1e300/1e300/1.5/a/b",
		"hexadecimal":      "0xff/0xff/0xff/a/b",
		"infinite":         "inf/nan/inf/a/b",
		"version 0":        "0/" + far + "/1/a/b",
		"for ever":         "1/" + far + "/1/a/b",
		"latest":           far + "/" + far + "/1/a/b",
		"latest, no floor": far + "/0/1/a/b",
	} {
		for _, nodes := range [][]int{{0}, {0, 1, 2}} {
			what := fmt.Sprint(name, " on ", len(nodes))
			s.do([]string{"FLUSHALL"})
			s.do([]string{"SET", lockKey("key") + ":once", "1  5 1 0 4 0 1 4 1   " + mark + "  x"}, nodes...)
			try := func() error {
				l, err := tryUntilAnswered(t, q, "key", tick())
				if err == nil {
					require.NoError(t, l.Complete(t.Context()), what)
				}
				s.requireFree(longTTL, what)
				return err
			}
			if err := try(); err != nil {
				require.ErrorIs(t, err, redlock.ErrPaused, what)
			}
			_, err := q.Paused(t.Context(), "key")
			require.NoError(t, err, what)
			l, err := tryUntilAnswered(t, q, "other", tick())
			require.NoError(t, err, what)
			require.NoError(t, l.Complete(t.Context()), what)
			ctx, cancel := context.WithTimeout(t.Context(), longTTL/4)
			_, err = q.Resume(ctx, "key", redlock.PauseOptions{By: "Ann"})
			cancel()
			require.NoError(t, err, what)
			time.Sleep(pollTick)
			require.NoError(t, try(), what)
		}
	}
}

// setMark puts a mark into the record of a key on a node.
func (s *servers) setMark(node int, key, mark string) {
	s.t.Helper()
	text, err := s.Node(node).Do(s.t, "GET", ofPause(key)).ToString()
	require.NoError(s.t, err)
	fields := strings.SplitN(text, " ", 15)
	fields[12] = mark
	s.do([]string{"SET", ofPause(key), strings.Join(fields, " "), "KEEPTTL"}, node)
}

// A mark on one node that is ahead of the clocks lifts no pause on the others, and makes none, and
// is said once. Whoever pauses or resumes then wins over it, on all nodes.
func TestDamagedMarkOfOneNode(t *testing.T) {
	t.Parallel()
	for name, key := range pausable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServers(t, 3)
			var log lockedBuffer
			q := s.open(redlock.WithTTL(longTTL), redlock.WithMaxTTL(longTTL), logTo(&log))
			try := func() error {
				time.Sleep(20 * pollTick) // what is passed on comes in the background
				l, err := tryUntilAnswered(t, q, "key", tick())
				if err == nil {
					require.NoError(t, l.Complete(t.Context()))
				}
				s.requireFree(longTTL, name)
				return err
			}
			damage := func(floor string) {
				s.setMark(0, key, fmt.Sprintf("%d/%s/1/a/b", time.Now().Add(23*time.Hour).UnixMicro(), floor))
			}
			everywhere := func(version uint64) {
				for i := range 3 {
					text, err := s.Node(i).Do(t, "GET", ofPause(key)).ToString()
					require.NoError(t, err)
					require.Contains(t, text, fmt.Sprintf(" %d/", version))
				}
			}
			require.NoError(t, try())
			_, err := q.Pause(t.Context(), key, redlock.PauseOptions{By: "Ann"})
			require.NoError(t, err)
			damage("0")
			for range 3 {
				require.ErrorIs(t, try(), redlock.ErrPaused, "nobody has resumed")
			}
			p, err := q.Pause(t.Context(), key, redlock.PauseOptions{By: "Ann"})
			require.NoError(t, err)
			everywhere(p.Version)
			require.ErrorIs(t, try(), redlock.ErrPaused)
			p, err = q.Resume(t.Context(), key, redlock.PauseOptions{By: "Ann"})
			require.NoError(t, err)
			everywhere(p.Version)
			require.NoError(t, try())

			damage("9007199254740991")
			for range 3 {
				require.NoError(t, try(), "nobody has paused")
			}
			p, err = q.Resume(t.Context(), key, redlock.PauseOptions{By: "Ann"})
			require.NoError(t, err)
			everywhere(p.Version)
			require.NoError(t, try())
			for text, times := range map[string]int{"ahead of the clocks": 2, "it is replaced": 3} {
				require.LessOrEqual(t, strings.Count(log.String(), text), times, "%s", &log)
				require.Contains(t, log.String(), text)
			}
		})
	}
}

// The rights that ticks and pauses need are those that the advice names, for the keys of the
// prefix.
func TestRightsOfOperatorsAndReplicas(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name              string
		keys              []string
		ticks, own, alles bool // a tick can be had; the key can be paused, and all
	}{
		{"all of the prefix", []string{"~tenure:*"}, true, true, true},
		{"a replica", []string{"~tenure:{*", "~tenure:fences", "~tenure:members", "~tenure:all:once"}, true, false, false},
		{"a replica that reads pauses of all", []string{"~tenure:{*", "~tenure:fences", "~tenure:members", "%R~tenure:all:once"}, false, false, false},
		{"a replica that knows nothing of all", []string{"~tenure:{*", "~tenure:fences", "~tenure:members"}, false, false, false},
		{"an operator of a key", []string{"~tenure:{*", "~tenure:fences", "~tenure:members", "~tenure:all:once", "~tenure:pause:{key}*"}, true, true, false},
		{"an operator of all", []string{"~tenure:{*", "~tenure:fences", "~tenure:members", "~tenure:all:once", "~tenure:pause:{}*"}, true, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startServers(t, 3)
			s.do(append(append([]string{"ACL", "SETUSER", "tenure", "reset", "on", ">p4ss", "resetchannels", "&tenure:*"}, test.keys...), advised(t)...))
			q := openURLs(t, s.userURLs(), redlock.WithMaxTTL(serverTTL))
			can := func(can bool, what string, err error) {
				t.Helper()
				if can {
					assert.NoError(t, err, what)
				} else if assert.Error(t, err, what) {
					assert.ErrorContains(t, err, "permission", what)
				}
			}
			l, err := tryUntilAnswered(t, q, "key", tick())
			can(test.ticks, "a tick", err)
			if err == nil {
				require.NoError(t, l.Complete(t.Context()))
			}
			for key, may := range map[string]bool{"key": test.own, redlock.AllKeys: test.alles} {
				for what, do := range map[string]func(context.Context, string, redlock.PauseOptions) (redlock.Pause, error){"Pause": q.Pause, "Resume": q.Resume} {
					can(may, what+" "+key, untilAnswered(t, func() error {
						_, err := do(t.Context(), key, redlock.PauseOptions{})
						return err
					}))
				}
			}
		})
	}
}
