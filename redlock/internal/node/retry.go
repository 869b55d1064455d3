package node

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

const (
	// MinPause and MaxPause bound the pause before another try, where neither a measured round trip
	// nor the end of a key tells how long to wait. The pause doubles with each try.
	MinPause = 50 * time.Millisecond
	MaxPause = time.Second
)

// retries has the releases that failed. They are sent again until their keys have expired. It is
// safe for concurrent use.
type retries struct {
	mu  sync.Mutex
	all []*Request    // guarded by mu
	at  clock.Instant // guarded by mu; when to take out those that are due; 0 while there are none
}

// add keeps a failed release for another try. If the node is silent, the release is repeated for a
// TTL and a tenth from now on: a frozen server carries out what lies in its sockets when it goes
// on, and then gives the key a full TTL.
func (s *retries) add(r *Request, silent bool, now clock.Instant) {
	again, call := *r, *r.Call
	again.Call, again.To = &call, nil // the request has been answered, so its call is the sender's again
	if silent {
		again.Expires = now.Add(r.TTL + r.TTL/10)
	}
	// A tenth of the TTL at most, so that a node that comes back is clean long before the key would
	// expire.
	again.pause = min(max(2*r.pause, MinPause), MaxPause, r.TTL/10)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= maxQueue || now >= again.Expires {
		return
	}
	s.all = append(s.all, &again)
	if again.due = now.Add(Jitter(again.pause, 0.2)); s.at == 0 || again.due < s.at {
		s.at = again.due
	}
}

// due returns when to take releases out; never while there are none.
func (s *retries) due() clock.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == 0 {
		return never
	}
	return s.at
}

// take takes those out that are due, and returns them.
func (s *retries) take(now clock.Instant) (due []*Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(r *Request) bool {
		if r.due > now {
			return false
		}
		due = append(due, r)
		return true
	})
	if s.at = 0; len(s.all) > 0 {
		s.at = now.Add(MinPause)
	}
	return due
}

// Jitter spreads d evenly by a fraction up and down, so that processes that started together drift
// apart.
func Jitter(d time.Duration, fraction float64) time.Duration {
	return d + time.Duration(float64(d)*fraction*(2*rand.Float64()-1))
}
