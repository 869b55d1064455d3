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
	require.Equal(t, Load{All: 1210, Busy: 160}, parseLoad("cpu  100 20 30 1000 50 0 7 3 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n"))
	// Measured: they are not.
	require.Equal(t, Load{All: 1215, Busy: 153}, parseLoad("cpu  100 20 30 1000 50 5 7 3 9 9\n"))
	require.Equal(t, process{pid: 42, parent: 7, ticks: 154}, parseProcess("42 (a) b (c) R 7 42 42 0 -1 4194560 1 2 3 4 100 20 30 4 20 0 1 0\n"))
}

func TestTicksOf(t *testing.T) {
	all := []process{{1, 0, 1000}, {5, 1, 1}, {7, 5, 20}, {6, 5, 10}, {8, 7, 300}, {9, 1, 5000}}
	require.Equal(t, uint64(331), ticksOf(5, all), "itself, its children and theirs")
	require.Equal(t, uint64(300), ticksOf(8, all))
	require.Zero(t, ticksOf(77, all))
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
	busyFor(50 * time.Millisecond)
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
