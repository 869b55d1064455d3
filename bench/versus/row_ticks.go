package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// Who runs jobs. Only these rows have them. gocron's own plugin has one server.
var (
	tenureScheduler = &rival.Kind{Name: "Tenure's Scheduler", Module: rival.Tenure.Module, Servers: "3"}
	gocronRedisLock = &rival.Kind{Name: "gocron-redis-lock", Module: "github.com/go-co-op/gocron-redis-lock/v2", Servers: rival.OneServer}
	gocronAlone     = &rival.Kind{Name: "gocron, one process", Module: "github.com/go-co-op/gocron/v2", Servers: "0"}
)

const (
	tickProcesses = 3
	tickNodes     = 3
	// far is how long the answers of far nodes take.
	far = 40 * time.Millisecond
	// farEvery is how far the ticks of far are apart: from 2 s on they are asked for ahead.
	farEvery = 2 * time.Second
	// near is how near to the timer a run has to begin.
	near = 5 * time.Millisecond
	// tickRest is when a tick is lost that has not been run.
	tickRest = 5 * time.Second
)

var ticksColumns = []column{{Name: "p50 ms"}, {Name: "p99 ms"}, {Name: "max ms"}, {Name: "lost"}, {Name: "twice"}}

// dueRow is that of jobs that are all due in one second. jobs says how many.
func dueRow(name string, jobs func(size) int) *row {
	return &row{
		name: name, title: "jobs that are due in one second, three processes", columns: ticksColumns,
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = "So many jobs with the same crontab, whose tasks return at once. Late is the beginning of the task after the due time. " +
				"gocron alone is one process, and has nobody to agree with. "
			return s.ticks(ctx, b, ticksTask{Config: s.nearNodes(), Jobs: jobs(s.size), Ticks: 1}, nil)
		},
	}
}

// farRow is that of ticks with far nodes.
func farRow() *row {
	const within = "within 5 ms of a timer, %"
	return &row{
		name: "far", title: fmt.Sprintf("ticks with nodes %s away, three processes", far), columns: append(slices.Clone(ticksColumns), column{Name: within}),
		run: func(ctx context.Context, s *stage, b *board) error {
			links, err := s.servers.Slow(far)
			if err != nil {
				return err
			}
			defer links.Close()
			b.Work = fmt.Sprintf("One job every %s, %d ticks. The timer is one of the process that runs the tick. Through toxiproxy in this process. ", farEvery, s.size.ticks)
			c := s.nearNodes()
			c.URLs = links.URLs()[:tickNodes]
			return s.ticks(ctx, b, ticksTask{Config: c, Jobs: 1, Ticks: s.size.ticks, Every: farEvery}, func(k *rival.Kind, runs []tickRun) {
				n := 0
				for _, r := range runs {
					if r.Late-r.Control <= near {
						n++
					}
				}
				b.add(k, within, 100*float64(n)/float64(len(runs)))
			})
		},
	}
}

// nearNodes is how three servers are reached.
func (s *stage) nearNodes() rival.Config {
	c := s.config(defaultTTL)
	c.URLs = c.URLs[:tickNodes]
	return c
}

// ticks has everybody run the same jobs, round after round. also may note more about the runs.
func (s *stage) ticks(ctx context.Context, b *board, task ticksTask, also func(*rival.Kind, []tickRun)) error {
	for round := range s.size.few {
		for _, k := range s.takePart([]*rival.Kind{tenureScheduler, gocronAlone, gocronRedisLock}, round) {
			if err := s.servers.Flush(ctx); err != nil {
				return err
			}
			task.Way, task.Rest = k.Name, tickRest
			runs, err := runTicks(ctx, k, task)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", k.Name, round+1, err)
			}
			late := make([]time.Duration, len(runs))
			times := make(map[[2]int]int)
			for i, r := range runs {
				late[i] = r.Late
				times[[2]int{r.Job, r.Tick}]++
			}
			slices.Sort(late)
			b.add(k, "p50 ms", micros(late[len(late)/2])/1000)
			b.add(k, "p99 ms", micros(late[(len(late)*99+99)/100-1])/1000)
			b.add(k, "max ms", micros(late[len(late)-1])/1000)
			b.add(k, "lost", float64(task.Jobs*task.Ticks-len(times)))
			b.add(k, "twice", float64(len(runs)-len(times)))
			if also != nil {
				also(k, runs)
			}
		}
	}
	return s.servers.Flush(ctx)
}

// runTicks has processes run the jobs once, and returns all runs.
func runTicks(ctx context.Context, k *rival.Kind, task ticksTask) (runs []tickRun, err error) {
	processes := tickProcesses
	if k == gocronAlone {
		processes = 1
	}
	// In that time the processes begin, and write down their jobs.
	lead := 3*time.Second + time.Duration(task.Jobs)*15*time.Millisecond
	task.First = time.Now().Add(lead).Truncate(max(time.Second, task.Every)).Add(max(time.Second, task.Every))
	var children []*place.Child
	for range processes {
		var ready struct{}
		c, err := place.Spawn(ticksRole, task, &ready)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
		defer c.Kill()
		defer context.AfterFunc(ctx, c.End)()
	}
	for _, c := range children {
		var its []tickRun
		if err := c.Result(&its); err != nil {
			return nil, err
		}
		runs = append(runs, its...)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no tick was run within %s", tickRest)
	}
	return runs, nil
}
