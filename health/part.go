package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/tenure-dev/tenure/redlock"
)

// Part is something that a replica needs: a *redlock.Quorum, an *elector.Elector, a
// *scheduler.Scheduler, or a [Check].
type Part interface {
	// Healthy returns nil while the part is in order. Each probe calls it on a goroutine of its
	// own, never twice at once for one part of a Handler. It should not block. A panic counts as an
	// error. The methods of the error are called on that goroutine, too; a panic or a hang of one
	// counts as the part's.
	Healthy() error
}

// Check makes a Part of the caller's own. The context of fn ends after the [Timeout]. The text of
// fn's error is logged and never sent, because it may have a secret in it.
func Check(name string, fn func(context.Context) error) Part { return Named(name, check(fn)) }

type check func(context.Context) error

// Healthy calls the function.
func (c check) Healthy() error {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	return c(ctx)
}

// Named gives a part a name in the answers, in place of the name of its type. A name should be a
// word; characters that cannot be printed are replaced.
func Named(name string, p Part) Part { return &named{p, name} }

type named struct {
	Part
	name string
}

// Live has /livez ask the part, too. While the part fails, the supervisor restarts the process. Use
// it for failures that only a restart ends, such as a lead function that does not return
// (elector.ErrDrainTimeout).
//
// For /livez a failure of the nodes is no failure, nor is a part that is not started or was
// stopped.
func Live(p Part) Part { return &live{p} }

type live struct{ Part }

// part is a Part of a Handler.
type part struct {
	Part

	name string
	live bool // /livez asks it

	mu     sync.Mutex
	asked  *question // guarded by mu; the call under way, nil for none
	joined bool      // owned by the call under way; the part has been healthy
	said   state     // guarded by mu; the state that was logged last; empty for none
}

// question is one call of Healthy, shared by all probes that come during it.
type question struct {
	done  chan struct{}
	found finding // set before done is closed
}

// newPart takes the wrappers of Named and Live off a Part and names it.
func newPart(of Part) *part {
	p := &part{}
	for {
		switch w := of.(type) {
		case *named:
			p.name, of = cmp.Or(p.name, w.name), w.Part
			continue
		case *live:
			p.live, of = true, w.Part
			continue
		}
		break
	}
	p.Part = of
	if p.name == "" { // *redlock.Quorum is the quorum
		kind := fmt.Sprintf("%T", of)
		p.name = strings.ToLower(kind[strings.LastIndexByte(kind, '.')+1:])
	}
	p.name = printable(p.name)
	return p
}

// printable replaces the characters of a name that would disturb the reader's terminal.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
}

// hung is the finding of a part that did not answer in time.
var hung = newFinding(failed, fmt.Errorf("health: no answer within %v: %w", Timeout, context.DeadlineExceeded))

// ask returns the part's finding, or hung if up is closed first. A part that hangs is not called
// again before it has answered.
func (p *part) ask(up <-chan struct{}) finding {
	p.mu.Lock()
	asked := p.asked
	if asked == nil {
		asked = &question{done: make(chan struct{})}
		p.asked = asked
		go p.answer(asked)
	}
	p.mu.Unlock()
	select {
	case <-asked.done:
		return asked.found
	case <-up:
		return hung
	}
}

// gone is the finding of a part that ended its goroutine.
var gone = newFinding(failed, errors.New("health: the part called runtime.Goexit"))

// answer calls the part and closes asked.done, even if the part ends the goroutine.
func (p *part) answer(asked *question) {
	defer func() {
		p.mu.Lock()
		p.asked = nil
		p.mu.Unlock()
		close(asked.done)
	}()
	asked.found = gone
	asked.found = p.call()
}

// call asks the part, and its error for everything that is reported. The error may be of any type,
// and its methods may panic or hang, so none of them is called later.
func (p *part) call() (f finding) {
	defer func() {
		if value := recover(); value != nil {
			f = panicked(value)
		}
	}()
	err := p.Healthy()
	return newFinding(p.judge(err), err)
}

// state is the state of a part in the answers.
type state string

const (
	fine     state = "ok"
	waiting  state = "quarantined" // a quorum of nodes votes as soon as quarantines end
	degraded state = "degraded"    // too few nodes vote, or the clock is wrong; it was healthy before
	failed   state = "failed"
)

// ready reports whether a part in this state leaves the replica ready.
func (s state) ready() bool { return s != failed }

// judge returns the state of a part that answered err.
func (p *part) judge(err error) state {
	if err == nil {
		p.joined = true
		return fine
	}
	var lost *redlock.QuorumError
	var clock *redlock.ClockError
	switch {
	case errors.As(err, &clock) && p.joined:
		return degraded
	case !errors.As(err, &lost) || refused(lost):
		return failed
	case lost.Succeeded+inQuarantine(lost) >= lost.Need:
		return waiting
	case p.joined:
		return degraded
	}
	return failed
}

// refused reports whether this process is kept from its nodes because other processes use other
// nodes.
func refused(lost *redlock.QuorumError) bool {
	shared := 0
	for _, node := range lost.Errs {
		switch redlock.Condition(node.ErrorType()) {
		case redlock.ConditionAnotherList:
			return true
		case redlock.ConditionSeveralServers:
			shared++
		}
	}
	return shared > lost.Nodes-lost.Need
}

// inQuarantine counts the nodes that will vote again by themselves.
func inQuarantine(lost *redlock.QuorumError) (n int) {
	for _, node := range lost.Errs {
		if why := (*redlock.ConditionError)(nil); errors.As(node, &why) && !why.Until.IsZero() {
			n++
		}
	}
	return n
}

// news reports whether a state is to be logged: a state that differs from the last one, but not a
// first state that is fine.
func (p *part) news(is state) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.said
	p.said = is
	return was != is && (was != "" || is != fine)
}
