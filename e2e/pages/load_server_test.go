package pages

import (
	"runtime"
)

// heap is what this process uses, which is the server, the replicas and the readers.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}
