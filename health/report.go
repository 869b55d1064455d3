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

// report is the answer to a probe. Its JSON is what ?verbose shows.
type report struct {
	Check  string   `json:"check"` // livez or readyz
	OK     bool     `json:"ok"`
	Reason string   `json:"reason,omitempty"` // why not, when that is no part's matter
	Parts  []answer `json:"parts"`
}

// answer is how one part is.
type answer struct {
	Name   string `json:"name"`
	State  state  `json:"state"`
	Reason string `json:"reason,omitempty"` // an ErrorType
	Voting *int   `json:"voting,omitempty"` // nodes that do, when they are too few
	Needed *int   `json:"needed,omitempty"`
	Nodes  []node `json:"nodes,omitempty"` // those that do not
}

// node is why a node does not vote.
type node struct {
	Node   string     `json:"node"`
	Reason string     `json:"reason"`          // an ErrorType
	Until  *time.Time `json:"until,omitempty"` // when it votes again by itself
}

// finding is what is known of a part once it has answered, and has nothing of its error in it.
type finding struct {
	answer

	text     string // the error's, for the log
	restarts bool   // a restart of the process helps, if the part is to be live
}

func newFinding(is state, err error) finding {
	f := finding{answer: newAnswer(is, err)}
	if err != nil {
		f.text, f.restarts = err.Error(), restarts(err)
	}
	return f
}

// panicked is what is known of a part that panicked.
func panicked(value any) (f finding) {
	f = finding{answer: answer{State: failed, Reason: "panic"}, text: "health: panic", restarts: true}
	defer func() { _ = recover() }() // in a method of the value, where fmt gives up
	f.text = fmt.Sprintf("health: panic: %v", value)
	return f
}

// restarts reports whether a restart of the process helps a part that is to be live.
func restarts(err error) bool {
	switch word(err) {
	case "closed", "not_running": // not started yet, or stopped
		return false
	}
	var nodes *redlock.NodeError
	return !errors.Is(err, redlock.ErrNoQuorum) && !errors.As(err, &nodes)
}

// newAnswer is what is told of a part, but for its name. No text of an error is in it: that of a
// caller's own check may be anything.
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

// word is a stable word for an error, and empty for nil.
func word(err error) string {
	if err == nil {
		return ""
	}
	if w := elector.ErrorType(err); isWord.MatchString(w) {
		return w
	}
	return "_OTHER"
}

// String is the answer without ?verbose: a word, or a line for each part that fails.
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

// json is the answer with ?verbose.
func (r *report) json() []byte {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil { // there is nothing in it that cannot be written
		panic(err)
	}
	return append(text, '\n')
}
