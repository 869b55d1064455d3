package node

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

const (
	// MinPause and MaxPause bound the pause before another try where nothing tells how long to
	// wait, such as the measured round trip or the end of a key. It doubles.
	MinPause = 50 * time.Millisecond
	MaxPause = time.Second
)

// retries are releases that failed, and are sent again until their keys have expired. They are safe
// for concurrent use.
type retries struct {
	mu  sync.Mutex
	all []*Request    // guarded by mu
	at  clock.Instant // guarded by mu; when the next is due; 0 while there are none
}

// add keeps a failed release for another try. While a node is silent nothing expires: what lies in
// a frozen server's sockets is carried out when it goes on, with a full TTL.
func (s *retries) add(r *Request, silent bool, now clock.Instant) {
	again, call := *r, *r.Call
	again.Call, again.To = &call, nil // it has been answered: the call is its sender's
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
	if at := now.Add(Jitter(again.pause, 0.2)); s.at == 0 || at < s.at {
		s.at = at
	}
}

// due is when the next is due; never while there are none.
func (s *retries) due() clock.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == 0 {
		return never
	}
	return s.at
}

// take returns all of them.
func (s *retries) take() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all, s.at = nil, 0
	return all
}

// Jitter spreads d evenly by a fraction up and down, so that what started together drifts apart.
func Jitter(d time.Duration, fraction float64) time.Duration {
	return d + time.Duration(float64(d)*fraction*(2*rand.Float64()-1))
}
