package stat

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is what this process has used so far and uses now, by its own accounting.
type Usage struct {
	CPU        time.Duration // user and system, getrusage(2)
	Heap       uint64        // bytes of live and unswept objects, and of goroutines' stacks
	RSS        uint64        // resident bytes, /proc/self/statm; 0 where there is none
	Goroutines int
	Mallocs    uint64
}

// Used reads it. It stops the world for a moment.
func Used() (Usage, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return Usage{}, fmt.Errorf("stat: getrusage: %w", err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	rss, err := resident()
	if err != nil {
		return Usage{}, err
	}
	return Usage{
		CPU:        time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		Heap:       m.HeapAlloc + m.StackInuse,
		RSS:        rss,
		Goroutines: runtime.NumGoroutine(),
		Mallocs:    m.Mallocs,
	}, nil
}

func resident() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("stat: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("stat: unexpected /proc/self/statm: %q", text)
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("stat: unexpected /proc/self/statm: %q", text)
	}
	return pages * uint64(os.Getpagesize()), nil
}

// peakEvery is how often a Peak looks. Neither look stops the world.
const peakEvery = 5 * time.Millisecond

// Peak follows the number of goroutines and the memory of objects and stacks.
type Peak struct {
	goroutines int
	memory     uint64
	stop, done chan struct{}
}

// FollowPeak begins to look; Stop ends it.
func FollowPeak() *Peak {
	p := &Peak{stop: make(chan struct{}), done: make(chan struct{})}
	go p.follow()
	return p
}

func (p *Peak) follow() {
	defer close(p.done)
	tick := time.NewTicker(peakEvery)
	defer tick.Stop()
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	for {
		metrics.Read(samples)
		p.memory = max(p.memory, samples[0].Value.Uint64()+samples[1].Value.Uint64())
		p.goroutines = max(p.goroutines, runtime.NumGoroutine())
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
	}
}

// Stop returns the largest numbers that were seen.
func (p *Peak) Stop() (goroutines int, memory uint64) {
	close(p.stop)
	<-p.done
	return p.goroutines, p.memory
}
