package tenureotel_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tenure-dev/tenure/elector"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

var environment = attribute.String("deployment.environment.name", "test")

// global are the global providers. They can be set once in a process.
var global *telemetry

func setGlobal() {
	if global != nil {
		return // the test is repeated
	}
	global = &telemetry{recorder: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(global.recorder)))
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(global.reader)))
}

// Without providers, and with nil ones, the global providers are used: also those that are set
// after New.
func TestGlobalProvidersAreUsedAlsoThoseThatAreSetLater(t *testing.T) {
	standard, err := tenureotel.New()
	require.NoError(t, err)
	explicit, err := tenureotel.New(tenureotel.WithTracerProvider(nil), tenureotel.WithMeterProvider(nil))
	require.NoError(t, err)
	var l *redlock.Lease
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) { l = acquire(t, open(t, fleet), "early") })
	standard.TraceAcquireEnd(t.Context(), redlock.TraceAcquireEndData{Key: "early", Lease: l})
	jobs := standard.Scheduler()
	jobs.Job(t.Context(), scheduler.JobTrace{Job: "early", Election: "early", Next: time.Unix(3000, 0), Pause: scheduler.PauseTrace{Paused: true}})
	standard.RecordJobTimingWithStatus(time.Unix(1000, 0), time.Unix(1002, 0), uuid.New(), "early-bare", nil, gocron.Success, nil)
	setGlobal()
	global.forget()
	before := global.total(t, "tenure.lease.acquire.duration")
	for _, tel := range []*tenureotel.Instrumentation{standard, explicit} {
		ctx := tel.TraceAcquireStart(t.Context(), redlock.TraceAcquireStartData{Key: "orders"})
		tel.TraceAcquireEnd(ctx, redlock.TraceAcquireEndData{Key: "orders"})
	}
	require.Len(t, global.spans("tenure.lease.acquire"), 2)
	require.Equal(t, 2, global.total(t, "tenure.lease.acquire.duration")-before)
	standard.TraceVote(t.Context(), redlock.TraceVoteData{Node: "node:6379", Votes: true})
	require.EqualValues(t, 1, global.value(t, "tenure.node.voting", "server.address", "node"))

	// What was there before is as it is, and its counters are at zero.
	zero(t, global, "tenure.lease.lost", "tenure.reason", lossReasons, "tenure.lease.name", "early")
	zero(t, global, "tenure.job.skipped", "tenure.reason", skips, "tenure.job.name", "early")
	zero(t, global, "tenure.job.runs", "tenure.outcome", runEnds, "tenure.job.name", "early")
	zero(t, global, "tenure.election.transitions", "tenure.reason", ends, "tenure.election.name", "early", "tenure.to", "follower")
	require.Zero(t, global.value(t, "tenure.job.conflict", "tenure.job.name", "early"))
	require.EqualValues(t, 1002, global.value(t, "tenure.job.success_timestamp", "tenure.job.name", "early-bare"))
	require.EqualValues(t, 3000, global.value(t, "tenure.job.next_timestamp", "tenure.job.name", "early"))
	require.EqualValues(t, 1, global.value(t, "tenure.job.paused", "tenure.job.name", "early"))
	require.EqualValues(t, 1, global.value(t, "tenure.lease.held", "tenure.lease.name", "early"))
	standard.TraceReleaseEnd(t.Context(), redlock.TraceReleaseEndData{Key: "early", Lease: l})
	require.Zero(t, global.value(t, "tenure.lease.held", "tenure.lease.name", "early"))

	require.NoError(t, standard.Close())
	require.NoError(t, standard.Close())
	require.NoError(t, explicit.Close())
	for _, state := range []string{"tenure.node.voting", "tenure.lease.held", "tenure.job.next_timestamp", "tenure.job.paused"} {
		require.Empty(t, global.points(t, state))
	}
}

func TestWithAttributesAreOnEverySpanAndMetric(t *testing.T) {
	tel, told := told(t)
	for _, s := range tel.spans() {
		attributes := attributesOf(s)
		require.Equal(t, "test", attributes[string(environment.Key)], s.Name())
		require.Equal(t, "7", attributes["shard"], s.Name())
	}
	require.Equal(t, 22, len(told.Metrics))
	for _, m := range told.Metrics {
		for _, p := range pointsOf(t, m) {
			v, ok := p.attributes.Value(environment.Key)
			require.True(t, ok, "%s %v", m.Name, p.attributes.ToSlice())
			require.Equal(t, "test", v.AsString())
			require.True(t, p.attributes.HasValue("shard"), m.Name)
		}
	}
}

func TestWithLeaseNamesNamesLeasesOnMetricsAndSpans(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t, tenureotel.WithLeaseNames(func(key string) string {
			name, _, _ := strings.Cut(key, "/")
			return name
		}))
		q := open(t, fleet, redlock.WithTracer(tel))
		require.NoError(t, acquire(t, q, "invoice/1").Release(t.Context()))
		acquire(t, q, "invoice/2")
		settle()
		require.Equal(t, 2, tel.total(t, "tenure.lease.acquire.duration", "tenure.lease.name", "invoice"))
		require.Equal(t, 2, tel.total(t, "tenure.lease.acquire.duration"))
		require.EqualValues(t, 1, tel.value(t, "tenure.lease.held", "tenure.lease.name", "invoice"))
		s := tel.spans("tenure.lease.acquire")[1]
		require.Equal(t, "invoice", attributesOf(s)["tenure.lease.name"])
		require.Equal(t, "invoice/2", attributesOf(s)["tenure.lease.key"], "a span has the key too")
	})
}

// Leases of jobs, pauses and orders share a name each, whatever WithLeaseNames says of others:
// their keys are many, or made up as the program runs.
func TestLeasesOfAKindShareAName(t *testing.T) {
	tel := newTelemetry(t, tenureotel.WithLeaseNames(strings.ToUpper))
	for _, key := range []string{"job/report", "job/mail", "pause/job/report", "order/17", "invoice/17", "election/poller", "jobs"} {
		tel.TraceAcquireEnd(t.Context(), redlock.TraceAcquireEndData{Key: key, Err: redlock.ErrHeld})
	}
	for name, n := range map[string]int{"job/*": 2, "pause/*": 1, "order/*": 1, "INVOICE/17": 1, "ELECTION/POLLER": 1, "JOBS": 1} {
		require.Equal(t, n, tel.total(t, "tenure.lease.acquire.duration", "tenure.lease.name", name), name)
	}
}

// Leases beyond MaxLeaseNames share a name; the counts of all are kept.
func TestLeaseNamesAreBounded(t *testing.T) {
	tel := newTelemetry(t)
	const beyond = 25
	for i := range tenureotel.MaxLeaseNames + beyond {
		key := fmt.Sprintf("invoice/%d", i)
		ctx := tel.TraceAcquireStart(t.Context(), redlock.TraceAcquireStartData{Key: key})
		tel.TraceAcquireEnd(ctx, redlock.TraceAcquireEndData{Key: key})
	}
	points := tel.points(t, "tenure.lease.acquire.duration")
	assert.Len(t, points, tenureotel.MaxLeaseNames+1)
	assert.Equal(t, beyond, tel.total(t, "tenure.lease.acquire.duration", "tenure.lease.name", tenureotel.OtherLeases))
	assert.Equal(t, 1, tel.total(t, "tenure.lease.acquire.duration", "tenure.lease.name", "invoice/0"))
	for _, m := range tel.scope(t).Metrics {
		for _, p := range pointsOf(t, m) {
			require.False(t, p.attributes.HasValue("otel.metric.overflow"), "%s exceeds the SDK's limit of attribute sets", m.Name)
		}
	}
}

// docs/telemetry.md says how many jobs and elections the SDK's limit of attribute sets leaves room
// for: one of them is for what is beyond.
func TestPageSaysHowManyJobsAndElectionsThereIsRoomFor(t *testing.T) {
	const sets = 2000 - 1
	jobs, elections := sets/max(len(skips), len(runEnds))/10*10, sets/(len(ends)+1)/10*10
	page, err := os.ReadFile("../docs/telemetry.md")
	require.NoError(t, err)
	require.Contains(t, strings.Join(strings.Fields(string(page)), " "),
		fmt.Sprintf("which is enough for %d jobs and %d elections in one process", jobs, elections))
	fits := func(jobs, elections int) bool {
		tel := newTelemetry(t)
		for i := range jobs {
			tel.Scheduler().Job(t.Context(), scheduler.JobTrace{Job: fmt.Sprintf("job-%d", i)})
		}
		for i := range elections {
			tel.TraceCampaignStart(t.Context(), elector.TraceCampaignStartData{Election: fmt.Sprintf("election-%d", i)})
		}
		for _, name := range []string{"tenure.job.skipped", "tenure.job.runs", "tenure.election.transitions"} {
			for _, p := range tel.points(t, name) {
				if p.attributes.HasValue("otel.metric.overflow") {
					return false
				}
			}
		}
		return true
	}
	require.True(t, fits(jobs, elections))
	require.False(t, fits(jobs+10, 0))
	require.False(t, fits(0, elections+10))
}

func TestOptionsThatCannotBeUsedAreRefused(t *testing.T) {
	for _, test := range []struct {
		option string
		given  tenureotel.Option
	}{
		{"New", nil},
		{"WithLeaseNames", tenureotel.WithLeaseNames(nil)},
		{"WithAttributes", tenureotel.WithAttributes(environment, attribute.KeyValue{})},
		{"WithAttributes", tenureotel.WithAttributes(attribute.String("", "value"))},
	} {
		tel, err := tenureotel.New(tenureotel.WithoutNodeSpans(), test.given)
		require.Nil(t, tel)
		var invalid *tenureotel.OptionError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, test.option, invalid.Option)
		require.True(t, strings.HasPrefix(err.Error(), "tenureotel: "+test.option+": "), err.Error())
		require.Equal(t, "invalid", redlock.ErrorType(err))
	}
}

// failing is a meter provider whose instruments cannot be had.
type failing struct{ metricnoop.MeterProvider }

type failingMeter struct{ metricnoop.Meter }

func (failing) Meter(string, ...metric.MeterOption) metric.Meter { return failingMeter{} }

func (failingMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, fmt.Errorf("no counter %s", name)
}

func TestErrorsOfTheMeterProviderAreReturned(t *testing.T) {
	tel, err := tenureotel.New(tenureotel.WithMeterProvider(failing{}))
	require.Nil(t, tel)
	require.ErrorContains(t, err, "tenureotel: ")
	require.ErrorContains(t, err, "no counter tenure.lease.lost")
	require.Nil(t, tel.Scheduler(), "scheduler.New refuses it")
}

// count adds up a counter's points.
func (tel *telemetry) count(t *testing.T, name string, with ...string) int {
	t.Helper()
	sum := 0.0
	for _, p := range tel.matching(t, name, with...) {
		sum += p.value
	}
	return int(sum)
}

func TestBareSchedulerIsMeasured(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet)
		s := newGocron(t, q, tel.SchedulerOptions()...)
		runs := 0
		var succeeded time.Time
		task := func() error {
			time.Sleep(2 * time.Second)
			switch runs++; runs {
			case 1:
				succeeded = time.Now()
			case 2:
				return (*fs.PathError)(nil) // whose methods panic
			case 3:
				panic("panicked")
			}
			return nil
		}
		_, err := s.NewJob(everyTen, gocron.NewTask(task), gocron.WithName("bare"), survivesPanics)
		require.NoError(t, err)
		s.Start()
		pass(time.Second)
		require.Empty(t, tel.points(t, "tenure.job.success_timestamp"), "there has been none")
		pass(34 * time.Second)
		holder := acquire(t, q, "job/bare")
		pass(10 * time.Second)
		require.NoError(t, holder.Release(t.Context()))
		for _, outcome := range []string{"success", "error", "panic"} {
			require.EqualValues(t, 1, tel.value(t, "tenure.job.runs", "tenure.job.name", "bare", "tenure.outcome", outcome), outcome)
		}
		took := tel.find(t, "tenure.job.duration", "tenure.job.name", "bare")
		require.EqualValues(t, 3, took.count)
		require.InDelta(t, 6, took.value, 0.001)
		at := tel.value(t, "tenure.job.success_timestamp", "tenure.job.name", "bare")
		require.InDelta(t, float64(succeeded.UnixMilli())/1000, at, 0.001, "later runs failed")
		delay := tel.find(t, "tenure.job.lateness", "tenure.job.name", "bare")
		require.EqualValues(t, 3, delay.count)
		require.InDelta(t, 0, delay.value, 0.001)
		require.EqualValues(t, 1, tel.value(t, "tenure.job.skipped", "tenure.job.name", "bare", "tenure.reason", "skipped"))
		require.NoError(t, s.Shutdown())
		require.Empty(t, tel.spans(), "gocron's monitors do not tell enough for spans")
	})
}

// A tick that comes while its job runs, or while jobs have all places, is skipped.
func TestTickWithoutAPlaceIsASkip(t *testing.T) {
	for reason, limit := range map[string][]gocron.SchedulerOption{"overlap": nil, "skipped": {gocron.WithLimitConcurrentJobs(1, gocron.LimitModeReschedule)}} {
		bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			tel := newTelemetry(t)
			s := newGocron(t, open(t, fleet), append(tel.SchedulerOptions(), limit...)...)
			_, err := s.NewJob(everyTen, gocron.NewTask(func() { time.Sleep(15 * time.Second) }), gocron.WithName("bare"),
				gocron.WithSingletonMode(gocron.LimitModeReschedule))
			require.NoError(t, err)
			s.Start()
			pass(27 * time.Second)
			require.EqualValues(t, 1, tel.value(t, "tenure.job.skipped", "tenure.job.name", "bare", "tenure.reason", reason))
			require.Equal(t, 1, tel.count(t, "tenure.job.skipped"))
		})
	}
}

// A Scheduler that reports in both ways has each run and each skip once, and the skips with their
// reasons.
func TestSchedulerWithTracerAndMonitorsCountsOnce(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		report(t, newScheduler(t, tel, q, scheduler.WithGocron(tel.SchedulerOptions()...)), func() {})
		pass(25 * time.Second)
		holder := acquire(t, q, "job/report")
		pass(10 * time.Second)
		require.NoError(t, holder.Release(t.Context()))
		pass(6 * time.Second)
		require.Equal(t, 3, tel.total(t, "tenure.job.duration", "tenure.job.name", "report"))
		require.Equal(t, 3, tel.total(t, "tenure.job.lateness", "tenure.job.name", "report"))
		require.Equal(t, 1, tel.count(t, "tenure.job.skipped", "tenure.job.name", "report"))
		require.Zero(t, tel.count(t, "tenure.job.skipped", "tenure.reason", "skipped"))
		require.Len(t, tel.spans("tenure.job.run"), 3)
	})
}

// untouchable is a job whose every method panics: gocron's loop calls JobUnregistered, and an
// accessor would stall it for a second.
type untouchable struct{ gocron.Job }

func TestJobUnregisteredAsksTheJobNothing(t *testing.T) {
	tel := newTelemetry(t)
	require.NotPanics(t, func() { tel.JobUnregistered(untouchable{}) })
	require.Panics(t, func() { tel.JobRegistered(untouchable{}) }, "the test notices")

	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		s := newGocron(t, open(t, fleet), newTelemetry(t).SchedulerOptions()...)
		j, err := s.NewJob(everyTen, gocron.NewTask(func() {}), gocron.WithName("bare"))
		require.NoError(t, err)
		s.Start()
		settle()
		began := time.Now()
		require.NoError(t, s.RemoveJob(j.ID()))
		settle()
		require.Zero(t, time.Since(began))
	})
}

// askingMeters are instruments that call back with each count.
type askingMeters struct {
	metricnoop.MeterProvider
	ask func()
}

type askingMeter struct {
	metricnoop.Meter
	ask func()
}

type askingCounter struct {
	metricnoop.Int64Counter
	ask func()
}

func (p askingMeters) Meter(string, ...metric.MeterOption) metric.Meter {
	return askingMeter{ask: p.ask}
}

func (m askingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return askingCounter{ask: m.ask}, nil
}

func (c askingCounter) Add(context.Context, int64, ...metric.AddOption) { c.ask() }

// Instruments, with the filters of the user's views, are foreign code.
func TestMeterCallsBack(t *testing.T) {
	var tel *tenureotel.Instrumentation
	for name, use := range map[string]func(name string){
		"lease": func(name string) {
			tel.TraceLost(t.Context(), redlock.TraceLostData{Key: name, Reason: redlock.LostDeadline})
		},
		"election": func(name string) {
			tel.TraceChange(t.Context(), elector.TraceChangeData{Election: name, Change: elector.Change{Kind: elector.Elected}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			var err error
			tel, err = tenureotel.New(tenureotel.WithMeterProvider(askingMeters{ask: func() {
				if calls.Add(1) == 1 {
					use("another")
				}
			}}))
			require.NoError(t, err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				use("one")
			}()
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Fatal("it hangs")
			}
			require.Greater(t, calls.Load(), int32(1))
		})
	}
}
