package stat_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/stat"
)

func TestQuantile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{0: 1, 0.01: 1, 0.2: 1, 0.21: 2, 0.5: 3, 0.8: 4, 0.99: 5, 1: 5} {
		require.Equal(t, want, stat.Quantile(values, p), "%v", p)
	}
	require.Equal(t, []float64{5, 1, 4, 2, 3}, values, "the values stay as they are")
	require.True(t, math.IsNaN(stat.Quantile(nil, 0.5)))
}

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, stat.Median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, stat.Median([]float64{4, 1, 2, 3}))
	require.Equal(t, 7.0, stat.Median([]float64{7}))
	require.True(t, math.IsNaN(stat.Median(nil)))
}

func TestRatios(t *testing.T) {
	require.Equal(t, []float64{2, 0.5}, stat.Ratios([]float64{4, 1, 9}, []float64{2, 2}))
	require.Equal(t, []float64{3}, stat.Ratios([]float64{1, 3}, []float64{0, 1}))
	require.Empty(t, stat.Ratios(nil, []float64{1}))
}
