package stat

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	// By ticks: soft interrupts are in the processes' time too.
	require.Equal(t, Load{All: 1210 * tick, Busy: 160 * tick}, parseLoad("cpu  100 20 30 1000 50 0 7 3 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n"))
	// Measured: they are not.
	require.Equal(t, Load{All: 1215 * tick, Busy: 153 * tick}, parseLoad("cpu  100 20 30 1000 50 5 7 3 9 9\n"))
}

func TestForeign(t *testing.T) {
	before := Load{All: 1000, Busy: 500, Own: 100}
	for _, tt := range []struct {
		name  string
		after Load
		want  float64
	}{
		{"all own", Load{All: 1200, Busy: 600, Own: 200}, 0},
		{"a quarter of the machine", Load{All: 1200, Busy: 650, Own: 200}, 0.25},
		{"all of it", Load{All: 1200, Busy: 700, Own: 100}, 1},
		{"own ticks before the machine's", Load{All: 1200, Busy: 600, Own: 201}, 0},
		{"counters that went back", Load{All: 1200, Busy: 499, Own: 100}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.InDelta(t, tt.want, Foreign(before, tt.after), 1e-9)
		})
	}
}

func TestLoadNow(t *testing.T) {
	busyFor := func(d time.Duration) {
		for began := time.Now(); time.Since(began) < d; {
			runtime.Gosched()
		}
	}
	before, ok := LoadNow()
	if _, err := os.Stat("/proc/stat"); err != nil {
		require.False(t, ok)
		return
	}
	require.True(t, ok)
	busyFor(200 * time.Millisecond)
	after, ok := LoadNow()
	require.True(t, ok)
	require.Greater(t, after.Own, before.Own)
	require.Greater(t, after.All, before.All)
	require.LessOrEqual(t, Foreign(before, after), 1.0)
}
