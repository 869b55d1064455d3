package node

import (
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

// Watch compares a server's wall clock, by which it lets keys expire, with this process's
// clock, which neither steps nor stops. Each answer that carries the server's TIME bounds the
// difference between the two: the answer was given after the request was sent and before the reply
// came. Slow replies widen the bounds and prove nothing.
type Watch struct {
	Lo, Hi time.Duration // bounds of the difference, server minus own
	At     clock.Instant // when the last sample came
	Known  bool
}

// slew is the largest rate at which time daemons adjust two machines' clocks against each other
// without a step: 500 parts in a million on each (adjtimex(2)). Such an adjustment is not taken for
// a jump.
const slew = 0.001

// observe takes a sample, and returns by how much at least the server's clock has jumped since the
// last one: positive forward, negative backward, zero if the sample agrees with clocks whose rates
// differ by at most drift (a fraction). After a jump later samples are compared with the new
// difference.
func (w *Watch) observe(sent, received clock.Instant, server time.Duration, drift float64) time.Duration {
	lo, hi := server-time.Duration(received), server-time.Duration(sent)
	if !w.Known {
		*w = Watch{Lo: lo, Hi: hi, At: received, Known: true}
		return 0
	}
	// The bounds of the difference now, if only the rates differ. The floor is not added to these
	// bounds, because small steps would add up to large ones with every look. The time since the
	// last sample may be negative: of two batches that were in flight together the later one may be
	// looked at first.
	drifted := mayDrift(max(received.Sub(w.At), 0), drift)
	least, most := w.Lo-drifted, w.Hi+drifted
	var jump time.Duration
	switch {
	case lo > most+DriftFloor:
		jump = lo - w.Hi
	case hi < least-DriftFloor:
		jump = hi - w.Lo
	case lo > most:
		lo, hi = most, most
	case hi < least:
		lo, hi = least, least
	default:
		lo, hi = max(lo, least), min(hi, most)
	}
	*w = Watch{Lo: lo, Hi: hi, At: received, Known: true}
	return jump
}

// mayDrift returns how far two clocks may have moved against each other between two looks. It grows
// with the whole drift up to MaxSampleEvery, and from then on only as time daemons let it: a node
// that was out of reach for an hour must not be allowed a jump of half a minute.
func mayDrift(gap time.Duration, drift float64) time.Duration {
	rate := max(drift, slew)
	return min(portion(gap, rate), portion(MaxSampleEvery, rate)+portion(gap, slew))
}

func portion(d time.Duration, fraction float64) time.Duration {
	return time.Duration(float64(d) * fraction)
}

// Slewed returns how far time daemons may move two clocks against each other in a time.
func Slewed(gap time.Duration) time.Duration { return portion(max(gap, 0), slew) }

const (
	// DriftFloor is the fixed part of the allowance for clocks that run at different rates: server
	// expiry has a resolution of 1 ms, and this process's clock may be off by clock.Tolerance
	// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ subtracts it as
	// CLOCK_DRIFT).
	DriftFloor = 2 * time.Millisecond
	// MaxSampleEvery bounds the time between two looks at a server's clock.
	MaxSampleEvery = 10 * time.Second
)
