package stat

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"
)

// Usage is the resources of this process, by its own accounting: CPU and Mallocs since its start,
// the others now.
type Usage struct {
	CPU        time.Duration // user and system, getrusage(2)
	Heap       uint64        // bytes of live and unswept objects, and of goroutines' stacks
	RSS        uint64        // resident bytes, /proc/self/statm; 0 where there is none
	Goroutines int
	Mallocs    uint64
}

// Used returns the usage. It stops the world for a moment.
func Used() Usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var size, resident uint64 // in pages
	text, _ := os.ReadFile("/proc/self/statm")
	_, _ = fmt.Sscan(string(text), &size, &resident)
	return Usage{
		CPU:        used(syscall.RUSAGE_SELF),
		Heap:       m.HeapAlloc + m.StackInuse,
		RSS:        resident * uint64(os.Getpagesize()),
		Goroutines: runtime.NumGoroutine(),
		Mallocs:    m.Mallocs,
	}
}

// peakEvery is how often a Peak looks. A look does not stop the world.
const peakEvery = 5 * time.Millisecond

// Peak keeps the largest number of goroutines, and the largest memory of objects and stacks.
type Peak struct {
	goroutines int
	memory     uint64
	stop, done chan struct{}
}

// FollowPeak begins to look. Stop ends it.
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

// Stop ends the looking and returns the largest numbers.
func (p *Peak) Stop() (goroutines int, memory uint64) {
	close(p.stop)
	<-p.done
	return p.goroutines, p.memory
}
