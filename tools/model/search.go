package model

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// system is a set of states that can be searched, and the steps from each. Its methods are called
// concurrently.
type system[S any] interface {
	// initial returns the state to begin with.
	initial() S
	// steps calls yield for every step from s. broken names the property that the step violates, if
	// any.
	steps(s *S, yield func(e event, next *S, broken Property))
	// canonical turns s into the state that stands for all states that differ from it in names
	// only.
	canonical(s *S)
}

// stateLimit keeps a search within the memory of a small machine.
const stateLimit = 20_000_000

// fingerprint stands for a state: 128 bits, so that two of some 10^7 states share one with a
// probability of about 10^-25.
type fingerprint struct{ a, b uint64 }

// memory returns the bytes of a value, which must consist of numbers without gaps between them.
func memory[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// identity returns the fingerprint of a canonical state. It is the same in every run.
func identity[S any](s *S) fingerprint {
	m := memory(s)
	a, b := uint64(0x9e3779b97f4a7c15), uint64(0xd1b54a32d192ed03)
	for at := 0; at < len(m); at += 8 {
		w := binary.LittleEndian.Uint64(m[min(at, len(m)-8):])
		hi, lo := bits.Mul64(a^w, 0xa0761d6478bd642f)
		a = hi ^ lo ^ bits.RotateLeft64(a, 23)
		hi, lo = bits.Mul64(b^w, 0xe7037ed1a0b428db)
		b = hi ^ lo ^ bits.RotateLeft64(b, 41) + w
	}
	hi, lo := bits.Mul64(a^0x8ebc6af09c88c6e3, b^0x589965cc75374cc3)
	return fingerprint{a ^ hi | 1, b ^ lo} // a is never 0, which stands for none
}

// result is the result of a search.
type result[S any] struct {
	states      int
	transitions int
	depth       int  // steps from the initial state to the farthest
	exhausted   bool // every state that can be reached was visited
	elapsed     time.Duration
	broken      Property // the first property that is violated; none if all hold
	trace       []move[S]
}

// move is one step of a counterexample.
type move[S any] struct {
	event event
	state S
}

// search visits states breadth first, until a property is violated, all states have been visited,
// or there are more than limit. The counterexample is a shortest one. With more than one worker,
// the counterexample may differ from run to run; the numbers do not.
func search[S any](sys system[S], workers, limit int) result[S] {
	began := time.Now()
	var r result[S]
	seen, first := new(visited), sys.initial()
	sys.canonical(&first)
	seen.add(identity(&first), 0)
	r.states = 1
	for frontier := []S{first}; ; {
		l := expand(sys, frontier, seen, workers)
		r.transitions += l.transitions
		r.states += len(l.next)
		if l.broken != none {
			r.broken = l.broken
			r.depth++
			r.trace = retrace(sys, seen, l)
			break
		}
		if r.exhausted = len(l.next) == 0; r.exhausted {
			break
		}
		r.depth++
		if r.states > limit {
			break
		}
		frontier = l.next
	}
	r.elapsed = time.Since(began)
	return r
}

// level is the result of all steps from the states of one depth.
type level[S any] struct {
	next        []S
	transitions int
	broken      Property
	from        fingerprint // the state before the violation
}

// expand takes all steps from the frontier.
func expand[S any](sys system[S], frontier []S, seen *visited, workers int) level[S] {
	const chunk = 128
	var (
		taken atomic.Int64
		wg    sync.WaitGroup
		mu    sync.Mutex
		all   level[S] // guarded by mu
	)
	for range workers {
		wg.Go(func() {
			var p level[S]
			for lo := int(taken.Add(chunk)) - chunk; lo < len(frontier); lo = int(taken.Add(chunk)) - chunk {
				for i := lo; i < min(lo+chunk, len(frontier)); i++ {
					from := identity(&frontier[i])
					sys.steps(&frontier[i], func(_ event, next *S, broken Property) {
						p.transitions++
						if broken != none && p.broken == none {
							p.broken, p.from = broken, from
						}
						t := *next
						sys.canonical(&t)
						if seen.add(identity(&t), from.a) {
							p.next = append(p.next, t)
						}
					})
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.next = append(all.next, p.next...)
			all.transitions += p.transitions
			if all.broken == none {
				all.broken, all.from = p.broken, p.from
			}
		})
	}
	wg.Wait()
	return all
}

// visited remembers fingerprints. For each it keeps the first half of the fingerprint of the state
// from which it was first reached; 0 for the initial state.
type visited [256]struct {
	mu   sync.Mutex
	from map[fingerprint]uint64 // guarded by mu
}

// add reports whether the fingerprint is new.
func (v *visited) add(f fingerprint, parent uint64) bool {
	s := &v[f.b>>56]
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.from[f]; known {
		return false
	}
	if s.from == nil {
		s.from = make(map[fingerprint]uint64)
	}
	s.from[f] = parent
	return true
}

// parents returns the way from the initial state to f, as first halves of fingerprints.
func (v *visited) parents(f fingerprint) []uint64 {
	byHalf := make(map[uint64]uint64)
	for i := range v {
		for print, parent := range v[i].from {
			byHalf[print.a] = parent
		}
	}
	var way []uint64
	for a := f.a; a != 0; a = byHalf[a] {
		way = append(way, a)
	}
	slices.Reverse(way)
	return way
}

// retrace walks the way to a violation again, so that states keep their names on the way. The
// states that were visited are canonical, and names change from one to the next.
func retrace[S any](sys system[S], seen *visited, l level[S]) []move[S] {
	way := seen.parents(l.from)
	half := func(s S) uint64 {
		sys.canonical(&s)
		return identity(&s).a
	}
	trace := []move[S]{{state: sys.initial()}}
	step := func(is func(next *S, broken Property) bool) {
		here, found := trace[len(trace)-1].state, false
		sys.steps(&here, func(e event, next *S, broken Property) {
			if !found && is(next, broken) {
				trace, found = append(trace, move[S]{e, *next}), true
			}
		})
	}
	for _, a := range way[1:] {
		step(func(next *S, _ Property) bool { return half(*next) == a })
	}
	step(func(_ *S, broken Property) bool { return broken == l.broken })
	return trace
}
