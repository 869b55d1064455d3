package stat_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/bench/internal/stat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUsed(t *testing.T) {
	before := stat.Used()
	kept := make([]byte, 64<<20)
	for i := range kept {
		kept[i] = 1
	}
	for began := time.Now(); time.Since(began) < 20*time.Millisecond; {
		runtime.Gosched()
	}
	after := stat.Used()
	require.Greater(t, after.CPU, before.CPU)
	require.Greater(t, after.Heap, before.Heap+60<<20)
	require.Greater(t, after.Mallocs, before.Mallocs)
	require.Positive(t, after.Goroutines)
	if before.RSS != 0 {
		require.Greater(t, after.RSS, before.RSS+32<<20)
	}
	runtime.KeepAlive(kept)
}
