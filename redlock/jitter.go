package redlock

import (
	"math/rand/v2"
	"slices"
	"time"
)

// jitter spreads d evenly by a fraction up and down, so that what started together drifts apart.
func jitter(d time.Duration, fraction float64) time.Duration {
	return d + time.Duration(float64(d)*fraction*(2*rand.Float64()-1))
}

// fullJitter is a random time up to d: what waits for the same thing comes back spread over all of
// it (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
func fullJitter(d time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(d) + 1)) }

// nthSmallest returns the n-th smallest of ds, counted from one.
func nthSmallest(ds []time.Duration, n int) time.Duration {
	slices.Sort(ds)
	return ds[n-1]
}
