// Package stat holds the few statistics that the benchmark prints.
package stat

import (
	"math"
	"slices"
)

// Quantile returns the smallest value that at least a fraction p of the values do not exceed
// (nearest rank), and NaN without values. It does not interpolate: every result was measured. The
// values need not be sorted and stay as they are.
func Quantile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Median returns the middle value, or the mean of the two in the middle, and NaN without values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Ratios divides the values of two rivals, measured in the same rounds, round by round. It leaves
// out rounds that only one of them had, and rounds in which the second measured zero.
func Ratios(values, to []float64) []float64 {
	var ratios []float64
	for i := range min(len(values), len(to)) {
		if to[i] != 0 {
			ratios = append(ratios, values[i]/to[i])
		}
	}
	return ratios
}
