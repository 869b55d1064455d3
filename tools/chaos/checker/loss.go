package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

// calm is for how long a server has to be well to be restored and to learn of a pause: several
// ticks are asked for in that time.
const calm = time.Second

// never is the end of what does not end.
const never = history.Instant(math.MaxInt64)

func (h *History) quorum() int { return h.Settings.Servers/2 + 1 }

// span is a time in which a server was not well, or did not know what it had been told.
type span struct {
	node     int
	from, to history.Instant
}

func (s span) meets(from, to history.Instant) bool { return s.from <= to && s.to >= from }

// impaired returns when servers did not answer all, or had no vote.
func (h *History) impaired() (spans []span) {
	for i, s := range h.Strikes {
		if s.Node < 0 || s.Healed || s.Kind == fault.ScriptFlush || s.Kind == fault.FlushAll {
			continue
		}
		end := never
		for _, healed := range h.Strikes[i:] {
			if healed.Healed && healed.Node == s.Node && healed.Kind == s.Kind {
				end = healed.To
				break
			}
		}
		if !s.Kind.OnLink() && s.Kind != fault.FreezeServer && end != never {
			end = end.Add(h.Settings.Recovery)
		}
		spans = append(spans, span{s.Node, s.From, end})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return spans
}

// losses returns from when until when servers had lost their data: until they had been well for a
// moment, and so were restored.
func (h *History) losses(impaired []span) (losses []span) {
	for i, s := range h.Strikes {
		if s.Healed || s.Kind != fault.FlushAll && s.Kind != fault.RestartEmpty {
			continue
		}
		l := span{s.Node, s.From, s.To}
		if s.Kind == fault.RestartEmpty {
			l.to = never
			for _, healed := range h.Strikes[i:] {
				if healed.Healed && healed.Node == s.Node && healed.Kind == s.Kind {
					l.to = healed.To.Add(h.Settings.Recovery)
					break
				}
			}
		}
		for _, other := range impaired {
			if l.to != never && other.node == l.node && other.meets(l.to, l.to.Add(calm)) {
				l.to = max(l.to, other.to)
			}
		}
		if l.to != never {
			l.to = l.to.Add(calm)
		}
		losses = append(losses, l)
	}
	return losses
}

// emptied tells of a quorum of servers that lost their data in a time, each before those before it
// were restored.
func (h *History) emptied(from, to history.Instant) string {
	losses := h.losses(h.impaired())
	for _, last := range losses {
		if last.from < from || last.from > to {
			continue
		}
		lost := make(map[int]bool)
		for _, l := range losses {
			if l.from >= from && l.from <= last.from && l.to >= last.from {
				lost[l.node] = true
			}
		}
		if len(lost) >= h.quorum() {
			return fmt.Sprintf("a quorum was emptied: %d servers lost their data before one of them was restored", len(lost))
		}
	}
	return ""
}

// emptiedBeside tells of a server that lost its data in a time while another one did not answer, or
// had lost its own, and when that was.
func (h *History) emptiedBeside(from, to history.Instant) (why string, since history.Instant) {
	impaired := h.impaired()
	losses := h.losses(impaired)
	for _, l := range losses {
		if l.from < from || l.from > to {
			continue
		}
		for _, other := range slices.Concat(impaired, losses) {
			if other.node != l.node && other.meets(l.from, min(l.to, to)) {
				return fmt.Sprintf("server %d lost its data while server %d did not answer", l.node+1, other.node+1), l.from
			}
		}
	}
	return "", 0
}

// spread reports whether more than a quorum of servers were well for a moment in a time: what a
// quorum knew, one more knows then.
func (h *History) spread(from, to history.Instant) bool {
	impaired := h.impaired()
	begins := []history.Instant{from}
	for _, s := range impaired {
		if s.to > from && s.to < to {
			begins = append(begins, s.to+1)
		}
	}
	for _, begin := range begins {
		if begin.Add(calm) > to {
			continue
		}
		ill := make(map[int]bool)
		for _, s := range impaired {
			if s.meets(begin, begin.Add(calm)) {
				ill[s.node] = true
			}
		}
		if h.Settings.Servers-len(ill) > h.quorum() {
			return true
		}
	}
	return false
}
