package node

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Errors of requests that the server has not carried out, as far as is known. Other errors are a
// *wire.Fault, or as the client or the server gave them.
var (
	// ErrClosed: the node was closed.
	ErrClosed = errors.New("node closed")
	// ErrTimeout: the answer took too long, or the request could not be sent in time.
	ErrTimeout = errors.New("timed out")
	// ErrUnresolved is an ErrTimeout: the time passed while the server's name was looked up.
	ErrUnresolved = fmt.Errorf("its name was not resolved: %w", ErrTimeout)
	// ErrOverloaded: the node's queue is full.
	ErrOverloaded = errors.New("too many requests are waiting for this node")
	// ErrAbandoned: the attempt ended before the request was sent, or sent again.
	ErrAbandoned = errors.New("abandoned before it was sent")
)

// Request is one call to one node. It belongs to the node from Send until its answer, and its call
// must not be changed meanwhile. What the node keeps for longer is a copy.
type Request struct {
	Call    *wire.Call
	To      Sink          // gets the answer; may be nil
	Slot    int           // the place of the node, for the receiver
	Expires clock.Instant // it is not sent after this
	TTL     time.Duration // of a release: for how long it is repeated while the node does not answer
	Ended   *atomic.Bool  // the attempt has ended: from then on only operations that outlast it are sent, see wire.Op.OfAttempt; nil for never

	alone   bool          // was sent together with others, and is to be sent by itself
	resent  bool          // was sent once more because the connection had broken
	held    bool          // has waited for a look, so later requests for its key may have been sent before it
	unknown bool          // the server does not know the script
	pause   time.Duration // before the next try of a release that failed
	due     clock.Instant // when that try is due
}

// hasEnded reports whether the request is for an attempt that has ended.
func (r *Request) hasEnded() bool {
	return r.Ended != nil && r.Call.Op.OfAttempt() && r.Ended.Load()
}

// waits reports whether the request waits for a look that is under way while the node does not
// vote. That holds for a request that is only for a server that was vouched for, and for a question
// about the server or a key whose answer has a receiver.
func (r *Request) waits() bool {
	return r.Call.Op.Gated() || (r.Call.Op.IsProbe() && r.Call.Roster == nil || r.Call.Op == wire.Observe) && r.To != nil
}

// worthRepeating reports whether a request is to be sent once more after that error. A join is not
// sent on another connection: it could follow the leave of its member.
func (r *Request) worthRepeating(err error) bool {
	switch {
	case wire.IsNoScript(err):
		return !r.unknown
	default:
		return !r.resent && r.Call.Op.Repeatable() && r.Call.Op != wire.Join && wire.IsBroken(err)
	}
}

// unsent returns the answer to a request that is not sent, or not again. A request that was sent
// before, alone or with others, may have been carried out.
func (r *Request) unsent(err error) Answer {
	a := failed(err)
	a.Unsent = !r.alone && !r.resent
	return a
}

// Answer is the outcome of a request.
type Answer struct {
	wire.Answer

	Err      error         // why there is no answer
	Unsent   bool          // with an error: the server has not carried it out
	Sent     clock.Instant // when it was written, just before; 0 if it was not
	Received clock.Instant // when the server had answered; 0 if it did not
}

func failed(err error) Answer {
	return Answer{Answer: wire.Answer{Verdict: wire.Failed}, Err: timely(err)}
}

// timely turns a timeout into ErrTimeout, and finds the Fault of other errors. It returns
// ErrAbandoned at once, which is frequent: each node that a lease did not need answers with it.
func timely(err error) error {
	switch {
	case err == ErrAbandoned || err == ErrTimeout || err == ErrUnresolved:
		return err
	case wire.IsTimeout(err) && wire.Is[*net.DNSError](err):
		return ErrUnresolved
	case wire.IsTimeout(err):
		return ErrTimeout
	default:
		return wire.Diagnose(err)
	}
}

// Sink gets the answers of requests, one for each: on the writer's goroutine, or in Send if the
// request was not taken. The node holds no lock. A Sink must not block, and may Send.
type Sink interface{ Answered(r *Request, a Answer) }
