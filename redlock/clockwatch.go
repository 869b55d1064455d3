package redlock

import (
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

// clockWatch compares a server's wall clock, by which it lets keys expire, with this process's
// clock, which neither steps nor stops. Each answer that carries the server's TIME bounds the
// difference between the two: the answer was given after the request was sent and before the reply
// came. Slow replies widen the bounds and prove nothing.
type clockWatch struct {
	lo, hi time.Duration // bounds of the difference, server minus own
	at     clock.Instant // when they were last known
	known  bool
}

// slew is the rate at which a time daemon adjusts two machines' clocks against each other at most,
// without a step: 500 parts in a million on each (adjtimex(2)). Seeing that as a jump would help
// nobody.
const slew = 0.001

// observe takes a sample and returns by how much at least the server's clock has jumped since the
// last one: positive forward, negative backward, zero if the sample agrees with clocks whose rates
// differ by at most drift (a fraction). After a jump the new difference is what later samples are
// compared with.
func (w *clockWatch) observe(sent, received clock.Instant, server time.Duration, drift float64) time.Duration {
	lo, hi := server-time.Duration(received), server-time.Duration(sent) //mutant:slow-answer-is-a-jump
	if !w.known {
		*w = clockWatch{lo: lo, hi: hi, at: received, known: true}
		return 0
	}
	// Where the difference may be by now if only the rates differ. The floor is not added to that:
	// small steps would add up to large ones with every look. Of two batches that were in flight
	// together the later may be looked at first.
	drifted := mayDrift(max(received.Sub(w.at), 0), drift) //mutant:late-look-for-a-jump
	least, most := w.lo-drifted, w.hi+drifted
	var jump time.Duration
	switch {
	case lo > most+driftFloor:
		jump = lo - w.hi
	case hi < least-driftFloor:
		jump = hi - w.lo
	case lo > most:
		lo, hi = most, most //mutant:jump-in-small-steps
	case hi < least:
		lo, hi = least, least
	default:
		lo, hi = max(lo, least), min(hi, most)
	}
	*w = clockWatch{lo: lo, hi: hi, at: received, known: true}
	return jump
}

// mayDrift is by how much two clocks may have moved against each other over a gap between two
// looks. It grows with the whole drift for as long as looks are apart at most, and from then on as
// time daemons let it: a node that was out of reach for an hour must not be allowed a jump of half
// a minute.
func mayDrift(gap time.Duration, drift float64) time.Duration {
	rate := max(drift, slew)                                                         //mutant:slewing-is-a-jump
	return min(portion(gap, rate), portion(maxSampleEvery, rate)+portion(gap, slew)) //mutant:jump-after-a-long-time
}

func portion(d time.Duration, fraction float64) time.Duration {
	return time.Duration(float64(d) * fraction)
}
