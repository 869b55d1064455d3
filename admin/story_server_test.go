package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// replicaVariable makes the test binary a replica: its value is the nodes' URLs and its identity.
const replicaVariable = "ADMIN_TEST_REPLICA"

const (
	storyTTL = 2 * time.Second
	// storyRun is how long a run of the story's job takes, which ticks every second.
	storyRun = 3 * time.Second
	// patience is how long a test waits for an event that should come much sooner.
	patience = time.Minute
	poll     = 20 * time.Millisecond
)

// beReplica runs a job whose leader prints each run, until its input ends.
func beReplica(settings string) error {
	urls, identity, _ := strings.Cut(settings, " ")
	quiet := slog.New(slog.DiscardHandler)
	q, err := storyQuorum(strings.Split(urls, ","), identity)
	if err != nil {
		return err
	}
	s, err := scheduler.New(q, scheduler.WithElection("jobs"), scheduler.WithLogger(quiet), scheduler.WithStopTimeout(10*time.Second))
	if err != nil {
		return err
	}
	task := func(ctx context.Context) error {
		run, _ := scheduler.RunFromContext(ctx)
		fmt.Printf("began %d %d\n", run.FencingToken(), unixMilli(run.Due))
		select {
		case <-time.After(storyRun):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if _, err := s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(task), gocron.WithName("report")); err != nil {
		return err
	}
	s.Start()
	child.Work()
	if err := s.Shutdown(); err != nil {
		return err
	}
	return q.Close()
}

func unixMilli(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

func storyQuorum(urls []string, identity string) (*redlock.Quorum, error) {
	return redlock.Open(urls, redlock.WithTTL(storyTTL), redlock.WithMaxTTL(storyTTL), redlock.WithNodeTimeout(storyTTL/4),
		redlock.WithClockSkew(time.Millisecond), redlock.WithIdentity(identity), redlock.WithLogger(slog.New(slog.DiscardHandler)))
}

// began is a run as its replica prints it.
type began struct {
	replica string
	token   uint64
	tick    int64
}

// story is servers, and replicas in processes of their own.
type story struct {
	t     *testing.T
	fleet *valkeytest.Fleet

	mu   sync.Mutex
	runs []began // guarded by mu
}

func (s *story) start(identity string) (stop func()) {
	t := s.t
	r, err := child.StartReplica(replicaVariable+"="+strings.Join(s.fleet.URLs(), ",")+" "+identity, func(line string) {
		run := began{replica: identity}
		if _, err := fmt.Sscanf(line, "began %d %d", &run.token, &run.tick); err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.runs = append(s.runs, run)
		}
	})
	require.NoError(t, err)
	t.Cleanup(r.Stop)
	return r.Stop
}

func (s *story) began() []began {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]began(nil), s.runs...)
}

func (s *story) ticks() (n int) {
	for _, run := range s.began() {
		if run.tick != 0 {
			n++
		}
	}
	return n
}

func (s *story) eventually(is func() bool, what string) {
	s.t.Helper()
	require.Eventually(s.t, is, patience, poll, what)
}

// doubleMessages has every order be heard a second time from each node, and a third time later.
func (s *story) doubleMessages(nodes ...int) {
	const channel = "tenure:news:orders"
	for _, i := range nodes {
		client := s.fleet.Node(i).Client()
		conn, release := client.Dedicate()
		seen := make(map[string]bool)
		var work sync.WaitGroup
		messages := make(chan string, 1000)
		conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(m valkey.PubSubMessage) {
			select {
			case messages <- m.Message:
			default:
			}
		}})
		require.NoError(s.t, conn.Do(s.t.Context(), conn.B().Subscribe().Channel(channel).Build()).Error())
		ctx, cancel := context.WithCancel(context.Background())
		work.Go(func() {
			for {
				select {
				case text := <-messages:
					if seen[text] {
						continue
					}
					seen[text] = true
					for _, after := range []time.Duration{0, storyTTL} {
						work.Go(func() {
							select {
							case <-time.After(after):
								client.Do(ctx, client.B().Publish().Channel(channel).Message(text).Build())
							case <-ctx.Done():
							}
						})
					}
				case <-ctx.Done():
					return
				}
			}
		})
		s.t.Cleanup(func() {
			cancel()
			work.Wait()
			release()
		})
	}
}
