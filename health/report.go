package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
)

// report is the answer to a probe. ?verbose shows its JSON.
type report struct {
	Check  string   `json:"check"` // livez or readyz
	OK     bool     `json:"ok"`
	Reason string   `json:"reason,omitempty"` // why not, if the reason is no part's
	Parts  []answer `json:"parts"`
}

// answer is the state of one part.
type answer struct {
	Name   string `json:"name"`
	State  state  `json:"state"`
	Reason string `json:"reason,omitempty"` // an ErrorType
	Voting *int   `json:"voting,omitempty"` // how many nodes vote, if they are too few
	Needed *int   `json:"needed,omitempty"`
	Nodes  []node `json:"nodes,omitempty"` // the nodes that do not vote
}

// node says why a node does not vote.
type node struct {
	Node   string     `json:"node"`
	Reason string     `json:"reason"`          // an ErrorType
	Until  *time.Time `json:"until,omitempty"` // when it votes again by itself
}

// finding is the result of one call of a part. It does not refer to the part's error.
type finding struct {
	answer

	text     string // of the error, for the log
	restarts bool   // a restart of the process helps, if the part was given with Live
}

func newFinding(is state, err error) finding {
	f := finding{answer: newAnswer(is, err)}
	if err != nil {
		f.text, f.restarts = err.Error(), restarts(err)
	}
	return f
}

// panicked returns the finding of a part that panicked with value.
func panicked(value any) (f finding) {
	f = finding{answer: answer{State: failed, Reason: "panic"}, text: "health: panic", restarts: true}
	defer func() { _ = recover() }() // fmt passes on some panics of the value's methods
	f.text = fmt.Sprintf("health: panic: %v", value)
	return f
}

// restarts reports whether a restart of the process helps a part that fails with err.
func restarts(err error) bool {
	switch word(err) {
	case "closed", "not_running": // not started yet, or stopped
		return false
	}
	var nodes *redlock.NodeError
	return !errors.Is(err, redlock.ErrNoQuorum) && !errors.As(err, &nodes)
}

// newAnswer returns the answer for a part, without its name. It has no text of an error, because a
// caller's own check may put anything there.
func newAnswer(is state, err error) answer {
	a := answer{State: is, Reason: word(err)}
	var lost *redlock.QuorumError
	var of *redlock.NodeError
	switch {
	case errors.As(err, &lost):
		voting, needed := lost.Succeeded, lost.Need
		a.Voting, a.Needed = &voting, &needed
		for _, n := range lost.Errs {
			a.Nodes = append(a.Nodes, newNode(n))
		}
	case errors.As(err, &of):
		a.Nodes = []node{newNode(of)}
	}
	return a
}

func newNode(err *redlock.NodeError) node {
	n := node{Node: printable(err.Node), Reason: word(err)}
	if why := (*redlock.ConditionError)(nil); errors.As(err, &why) && !why.Until.IsZero() {
		until := why.Until
		if _, err := until.MarshalJSON(); err == nil { // it may be beyond the year 9999
			n.Until = &until
		}
	}
	return n
}

var isWord = regexp.MustCompile(`^[A-Za-z0-9_.]{1,64}$`)

// word returns a stable word for an error, and the empty string for nil.
func word(err error) string {
	if err == nil {
		return ""
	}
	if w := elector.ErrorType(err); isWord.MatchString(w) {
		return w
	}
	return "_OTHER"
}

// String returns the answer without ?verbose: "ok", or a line for each part that fails.
func (r *report) String() string {
	if r.OK {
		return "ok\n"
	}
	var b strings.Builder
	for _, a := range r.Parts {
		if !a.State.ready() {
			fmt.Fprintf(&b, "[-]%s failed: %s\n", a.Name, a.Reason)
		}
	}
	if r.Reason != "" {
		fmt.Fprintf(&b, "[-]%s\n", r.Reason)
	}
	fmt.Fprintf(&b, "%s check failed\n", r.Check)
	return b.String()
}

// json returns the answer with ?verbose.
func (r *report) json() []byte {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil { // every field can be marshaled
		panic(err)
	}
	return append(text, '\n')
}
