package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tenure-dev/tenure/tools/dashtest/dashboard"
	"github.com/tenure-dev/tenure/tools/dashtest/prometheus"
	"github.com/tenure-dev/tenure/tools/dashtest/verdict"
)

// Of the repository.
const (
	dashboardFile  = "examples/observability/grafana/dashboards/tenure.json"
	prometheusFile = "examples/observability/prometheus/prometheus.yml"
	ruleFiles      = "examples/observability/prometheus/rules/*.yml"
)

const (
	scrapeEvery = time.Second
	step        = time.Second     // between two points of a series
	settled     = 2 * time.Second // after which a scrape changes the answer for a time no more
	leaderLimit = 22 * time.Second

	replicaCount = 3
	scrapedLimit = 20 * time.Second
)

type options struct {
	root    string
	observe time.Duration
}

// live is a Prometheus that has scraped the example.
type live struct {
	client    *prometheus.Client
	dashboard *dashboard.Dashboard
	start     time.Time
	end       time.Time
}

// run runs everything, prints the table and returns how many problems it has.
func run(ctx context.Context, out io.Writer, o options) (problems int, err error) {
	board, err := dashboard.Read(filepath.Join(o.root, dashboardFile))
	if err != nil {
		return 0, err
	}
	rules, err := prometheus.ReadRules(filepath.Join(o.root, ruleFiles))
	if err != nil {
		return 0, err
	}
	if err := prometheus.Installed(); err != nil {
		return 0, err
	}
	directory, err := os.MkdirTemp("", "dashtest-")
	if err != nil {
		return 0, fmt.Errorf("dashtest: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	replicas, err := startExample(ctx, o.root, directory, o.observe+limit/3)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, replicas.stop()) }()
	server, err := startPrometheus(ctx, o.root, directory, replicas.targets)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()

	l := &live{client: &server.Client, dashboard: board}
	if err := l.watch(ctx, out, replicas, o.observe); err != nil {
		return 0, err
	}
	rows, err := l.ask(ctx, rules)
	if err != nil {
		return 0, err
	}
	return table(out, rows), nil
}

func startPrometheus(ctx context.Context, root, directory, targets string) (*prometheus.Server, error) {
	file, err := filepath.Abs(filepath.Join(root, prometheusFile))
	if err != nil {
		return nil, fmt.Errorf("dashtest: %w", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("dashtest: %w", err)
	}
	config, err := prometheus.Adaptation{Directory: filepath.Dir(file), Targets: targets, Every: scrapeEvery}.Adapt(text)
	if err != nil {
		return nil, err
	}
	return prometheus.Start(ctx, directory, config)
}

// watch lets Prometheus scrape until there has been a hand-over after a crash and somebody leads.
func (l *live) watch(ctx context.Context, out io.Writer, replicas *example, observe time.Duration) error {
	fmt.Fprintf(out, "Prometheus scrapes three replicas for %v; the leader is killed every %v, a node restarted every %v\n\n",
		observe, killEvery, restartEvery)
	if err := l.untilScraped(ctx); err != nil {
		return err
	}
	select {
	case <-replicas.process.Exited():
		return fmt.Errorf("dashtest: the example ended too early; it said:\n%s", replicas.output)
	case <-ctx.Done():
		return fmt.Errorf("dashtest: %w", ctx.Err())
	case <-time.After(observe):
	}
	const crashes = `sum(tenure_election_handover_duration_seconds_count{tenure_reason="expiry"})`
	answer, err := l.client.QueryRange(ctx, crashes, l.start, time.Now(), step)
	if err != nil {
		return err
	}
	if verdict.Values(answer) == 0 {
		return fmt.Errorf("dashtest: nobody took over from a killed leader: %s is empty", crashes)
	}
	return l.untilLed(ctx)
}

// untilScraped waits until Prometheus has scraped all replicas; what is shown begins there.
func (l *live) untilScraped(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, scrapedLimit)
	defer cancel()
	for {
		targets, err := l.client.Targets(ctx)
		if err != nil {
			return err
		}
		up := 0
		for _, t := range targets {
			if t.Health == "up" {
				up++
			}
		}
		if up == replicaCount {
			l.start = time.Now().Truncate(step)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("dashtest: %d of %d replicas are scraped: %w; the targets: %+v", up, replicaCount, ctx.Err(), targets)
		case <-time.After(poll):
		}
	}
}

// Every election, and each that somebody has led for a while.
const (
	elections = `count by (tenure_election_name) (tenure_election_lease_expiry_timestamp_seconds)`
	led       = `count by (tenure_election_name) (count_over_time((tenure_election_lease_expiry_timestamp_seconds > time())[6s:1s]) >= 6)`
)

// untilLed waits until all elections have been led for a while: the panels of the present have no
// value in a hand-over.
func (l *live) untilLed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaderLimit)
	defer cancel()
	for {
		now := time.Now().Truncate(step)
		all, err := l.client.Query(ctx, elections, now)
		if err != nil {
			return err
		}
		someone, err := l.client.Query(ctx, led, now)
		if err != nil {
			return err
		}
		if len(all) > 0 && len(someone) == len(all) {
			l.end = now.Add(-settled)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("dashtest: only %d of %d elections have been led for some seconds: %w", len(someone), len(all), ctx.Err())
		case <-time.After(poll):
		}
	}
}
