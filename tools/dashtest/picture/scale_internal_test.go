package picture

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestFormat(t *testing.T) {
	for _, tc := range []struct {
		unit          string
		value, spread float64
		want          string
	}{
		{"s", 0, 1, "0 s"}, {"s", 0.0005, 0.0005, "500 µs"}, {"s", 0.25, 0.05, "250 ms"}, {"s", 1.5, 0.5, "1.5 s"}, {"s", 180, 60, "3 min"},
		{"s", 43.2, 10, "43 s"}, {"short", 20, 5, "20"}, {"short", 0.5, 0.5, "0.5"}, {"none", 3, 10, "3"}, {"short", 1000, 100, "1000"},
	} {
		assert.Equal(t, tc.want, format(tc.unit, tc.value, tc.spread))
	}
}

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		low, high float64
		want      []float64
	}{
		{0, 9, []float64{0, 2.5, 5, 7.5, 10}},
		{0, 0, []float64{0, 0.25, 0.5, 0.75, 1}},
		{-1, 1, []float64{-1, -0.5, 0, 0.5, 1}},
	} {
		assert.InDeltaSlice(t, tc.want, ticks(tc.low, tc.high, 4), 1e-9)
	}
	marks := timeTicks(time.Unix(3, 0), time.Unix(63, 0), 5)
	assert.Equal(t, []time.Time{time.Unix(15, 0), time.Unix(30, 0), time.Unix(45, 0), time.Unix(60, 0)}, marks)
}
