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

// peakEvery is how often FollowPeak looks. A look does not stop the world.
const peakEvery = 5 * time.Millisecond

// FollowPeak looks at the number of goroutines, and at the memory of objects and stacks, until stop
// is called, which returns the largest of each.
func FollowPeak() (stop func() (goroutines int, memory uint64)) {
	end, done := make(chan struct{}), make(chan struct{})
	goroutines, memory := 0, uint64(0)
	go func() {
		defer close(done)
		tick := time.NewTicker(peakEvery)
		defer tick.Stop()
		samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		for {
			metrics.Read(samples)
			memory = max(memory, samples[0].Value.Uint64()+samples[1].Value.Uint64())
			goroutines = max(goroutines, runtime.NumGoroutine())
			select {
			case <-end:
				return
			case <-tick.C:
			}
		}
	}()
	return func() (int, uint64) {
		close(end)
		<-done
		return goroutines, memory
	}
}
