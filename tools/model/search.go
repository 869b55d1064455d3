package model

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// system is what can be searched: states, and the steps from each. Its methods are called
// concurrently.
type system[S any] interface {
	// initial returns the states to begin with.
	initial() []S
	// steps calls yield for every step from s. broken names the property that the step violates, if
	// any.
	steps(s *S, yield func(e event, next *S, broken Property))
	// canonical turns s into the state that stands for all that differ from it in names only.
	canonical(s *S)
	// identity returns two hashes of a canonical state.
	identity(s *S) fingerprint
}

// fingerprint stands for a state: 128 bits, so that two of some 10^7 states share one with a
// probability of about 10^-25.
type fingerprint struct{ a, b uint64 }

// hash is a fingerprint of words, the same in every run.
func hash(words []uint64) fingerprint {
	a, b := uint64(0x9e3779b97f4a7c15), uint64(0xd1b54a32d192ed03)
	for _, w := range words {
		hi, lo := bits.Mul64(a^w, 0xa0761d6478bd642f)
		a = hi ^ lo ^ bits.RotateLeft64(a, 23)
		hi, lo = bits.Mul64(b^w, 0xe7037ed1a0b428db)
		b = hi ^ lo ^ bits.RotateLeft64(b, 41) + w
	}
	hi, lo := bits.Mul64(a^0x8ebc6af09c88c6e3, b^0x589965cc75374cc3)
	return fingerprint{a ^ hi | 1, b ^ lo} // a is never 0, which marks an empty place
}

// flags packs what is so.
func flags(set ...bool) (v uint64) {
	for i, is := range set {
		if is {
			v |= 1 << i
		}
	}
	return v
}

// result is what a search saw.
type result[S any] struct {
	states      int
	transitions int
	depth       int  // steps from the initial states to the farthest
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

// search visits states breadth first until a property is violated, all have been visited or there
// are more than limit. The counterexample is a shortest one. With more than one worker, it may
// differ from run to run; the numbers do not.
func search[S any](sys system[S], workers, limit int) result[S] {
	began := time.Now()
	var r result[S]
	seen := newVisited()
	var frontier []S
	for _, s := range sys.initial() {
		sys.canonical(&s)
		if seen.add(sys.identity(&s), 0) {
			frontier = append(frontier, s)
		}
	}
	r.states = len(frontier)
	for len(frontier) > 0 {
		l := expand(sys, frontier, seen, workers)
		r.transitions += l.transitions
		r.states += len(l.next)
		if l.broken != none {
			r.broken = l.broken
			r.depth++
			r.trace = retrace(sys, seen, l)
			break
		}
		if len(l.next) == 0 {
			r.exhausted = true
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

// level is what the states of one depth lead to.
type level[S any] struct {
	next        []S
	transitions int
	broken      Property
	from        fingerprint // the state before the violation
	at          event       // and the step
}

// expand takes all steps from the frontier.
func expand[S any](sys system[S], frontier []S, seen *visited, workers int) level[S] {
	const chunk = 128
	var (
		taken atomic.Int64
		wg    sync.WaitGroup
	)
	parts := make([]level[S], workers)
	for w := range workers {
		wg.Go(func() {
			p := &parts[w]
			for {
				lo := int(taken.Add(chunk)) - chunk
				if lo >= len(frontier) {
					return
				}
				for i := lo; i < min(lo+chunk, len(frontier)); i++ {
					from := sys.identity(&frontier[i])
					sys.steps(&frontier[i], func(e event, next *S, broken Property) {
						p.transitions++
						if broken != none && p.broken == none {
							p.broken, p.from, p.at = broken, from, e
						}
						t := *next
						sys.canonical(&t)
						if seen.add(sys.identity(&t), from.a) {
							p.next = append(p.next, t)
						}
					})
				}
			}
		})
	}
	wg.Wait()
	all := parts[0]
	for _, p := range parts[1:] {
		all.next = append(all.next, p.next...)
		all.transitions += p.transitions
		if all.broken == none && p.broken != none {
			all.broken, all.from, all.at = p.broken, p.from, p.at
		}
	}
	return all
}

// visited remembers fingerprints, and for each the first half of that of the state it was first
// reached from, 0 for an initial one.
type visited struct{ shards [256]shard }

type shard struct {
	mu     sync.Mutex
	places []place // guarded by mu; a power of two, at most three quarters are in use
	used   int     // guarded by mu
}

type place struct {
	print  fingerprint
	parent uint64
}

func newVisited() *visited {
	v := new(visited)
	for i := range v.shards {
		v.shards[i].places = make([]place, 64)
	}
	return v
}

// add reports whether the fingerprint is new.
func (v *visited) add(f fingerprint, parent uint64) bool {
	s := &v.shards[f.b>>56]
	s.mu.Lock()
	defer s.mu.Unlock()
	if 4*s.used >= 3*len(s.places) {
		s.grow()
	}
	p := s.find(f)
	if p.print.a != 0 {
		return false
	}
	*p = place{f, parent}
	s.used++
	return true
}

// find returns the fingerprint's place, or the empty one where it belongs.
func (s *shard) find(f fingerprint) *place {
	mask := len(s.places) - 1
	for i := int(f.a>>1) & mask; ; i = (i + 1) & mask {
		if p := &s.places[i]; p.print == f || p.print.a == 0 {
			return p
		}
	}
}

func (s *shard) grow() {
	old := s.places
	s.places = make([]place, 2*len(old))
	for _, p := range old {
		if p.print.a != 0 {
			*s.find(p.print) = p
		}
	}
}

// parents returns the way from an initial state to f, as first halves of fingerprints.
func (v *visited) parents(f fingerprint) []uint64 {
	byHalf := make(map[uint64]uint64)
	for i := range v.shards {
		for _, p := range v.shards[i].places {
			if p.print.a != 0 {
				byHalf[p.print.a] = p.parent
			}
		}
	}
	var way []uint64
	for a := f.a; a != 0; a = byHalf[a] {
		way = append(way, a)
	}
	for i, j := 0, len(way)-1; i < j; i, j = i+1, j-1 {
		way[i], way[j] = way[j], way[i]
	}
	return way
}

// retrace walks the way to a violation again. States keep the names they have on the way: what was
// visited are canonical states, in which names change from step to step.
func retrace[S any](sys system[S], seen *visited, l level[S]) []move[S] {
	way := seen.parents(l.from)
	half := func(s S) uint64 {
		sys.canonical(&s)
		return sys.identity(&s).a
	}
	var trace []move[S]
	for _, s := range sys.initial() {
		if half(s) == way[0] {
			trace = append(trace, move[S]{state: s})
			break
		}
	}
	for _, a := range way[1:] {
		here, found := trace[len(trace)-1].state, false
		sys.steps(&here, func(e event, next *S, _ Property) {
			if !found && half(*next) == a {
				trace, found = append(trace, move[S]{e, *next}), true
			}
		})
	}
	here, found := trace[len(trace)-1].state, false
	sys.steps(&here, func(e event, next *S, broken Property) {
		if !found && broken == l.broken {
			trace, found = append(trace, move[S]{e, *next}), true
		}
	})
	return trace
}
