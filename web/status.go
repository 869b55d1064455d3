package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

// statusDoc is in every page and document: a sentence about the present state, and how reliable it
// is.
type statusDoc struct {
	Now      view.Time          `json:"now"`
	Sentence string             `json:"sentence"`
	Level    string             `json:"level"` // good, warn or bad
	Problems []view.Problem     `json:"problems"`
	Read     map[string]readDoc `json:"read"`

	Oldest view.Time `json:"-"` // beginning of the oldest read of a shown part

	needs *attention
}

type readDoc struct {
	At    view.Time `json:"at"`
	Error string    `json:"error"`
}

// slow and slowJobs are how long a read may take before the page says so.
const slow, slowJobs = 2 * time.Second, 20 * time.Second

func (h *Handler) status(s *snapshot, shows []part) *statusDoc {
	now := time.Now()
	doc := &statusDoc{Now: view.At(now), Problems: []view.Problem{}, Read: make(map[string]readDoc)}
	for p := range parts {
		r := s.read[p]
		if slices.Contains(shows, p) {
			doc.Read[p.String()] = readDoc{view.At(r.At), errorText(r.Err)}
			if doc.Oldest.IsZero() || r.At.Before(doc.Oldest.Time) {
				doc.Oldest = view.At(r.At)
			}
		}
		if text := h.problem(p, r, len(s.jobs) > 0, now); text != "" && (slices.Contains(shows, p) || p == partNodes) {
			doc.Problems = append(doc.Problems, view.Problem{Part: p.String(), Text: text})
		}
	}
	if slices.ContainsFunc(s.nodes, func(n view.Node) bool { return n.ErrorType == closedType }) {
		doc.Problems = append(doc.Problems, view.Problem{Part: partNodes.String(), Text: closedText})
	}
	doc.needs = attentionOf(s)
	doc.Sentence = sentence(s, doc.needs)
	doc.Level = doc.needs.level(len(doc.Problems))
	return doc
}

// problem says why a part is not up to date; empty if it is. some is true if jobs are shown.
func (h *Handler) problem(p part, r reading, some bool, now time.Time) string {
	name := p.String()
	busy := h.feed.loops[p].busy(now)
	switch {
	case r.Err != nil && r.At.IsZero():
		return fmt.Sprintf("The %s cannot be read: %s", name, errorText(r.Err))
	case r.Err != nil:
		return fmt.Sprintf("The %s are shown as they were %s ago: %s", name, view.Rough(now.Sub(r.At)), errorText(r.Err))
	case r.Tried.IsZero() && p == partJobs && some:
		return "The jobs are being read: not all are shown yet."
	case r.Tried.IsZero():
		return fmt.Sprintf("The %s have not been read yet: no answer has come from the nodes.", name)
	case busy > choice(p == partJobs, slowJobs, slow):
		return fmt.Sprintf("The %s are shown as they were %s ago: the nodes have not answered for %s.", name, view.Rough(now.Sub(r.At)), view.Rough(busy))
	}
	return ""
}

// closedText says that this process will not hear from the nodes again.
const closedText = "The process that serves this page has closed its connections to the nodes. Nothing here changes any more: restart it, or open the page of another replica."

// errorText returns the text of an error for people. The text may come from a server.
func errorText(err error) string { return visible(view.Error(err)) }

// sentence describes the present state in words on which an operator can act.
func sentence(s *snapshot, needs *attention) string {
	var said []string
	if len(s.nodes) > 0 {
		said = append(said, s.nodesSentence())
	}
	elections := make(map[string]int)
	for _, e := range s.elections {
		elections[choice(e.Error != "", "unknown", choice(e.Leader == nil, "none", choice(s.read[partElections].Err == nil, "led", "before")))]++
	}
	jobs := s.counts()
	if s.cluster().Stalled() { // then nothing else can be known
		jobs.Unknown, elections["unknown"] = 0, 0
	}
	if p := needs.all; p != nil {
		jobs.Paused = 0
		text := "All jobs are paused by " + inSentence(p.By) + choice(p.Reason != "", ": "+inSentence(p.Reason), "")
		said = append(said, strings.TrimSuffix(text, ".")+".")
	}
	for _, n := range []struct {
		count           int
		what, one, many string
	}{
		{elections["none"], "election", "has no leader", "have no leader"}, {elections["unknown"], "election", "is in an unknown state", "are in an unknown state"}, {elections["led"], "election", "has a leader", "have a leader"},
		{jobs.Late, "job", "is late", "are late"}, {jobs.Failing, "job", "is failing", "are failing"}, {jobs.Paused, "job", "is paused", "are paused"},
		{jobs.Unknown, "job", "is in an unknown state", "are in an unknown state"},
	} {
		if n.count > 0 {
			said = append(said, view.Counted(n.count, n.what)+" "+choice(n.count == 1, n.one, n.many)+".")
		}
	}
	unread := s.cluster().Stalled() || s.read[partJobs].At.IsZero() || s.read[partJobs].Err != nil
	switch {
	case jobs.Unknown > 0 || unread:
	case jobs.Total == 0:
		said = append(said, "No replica tells of a job.")
	case jobs.Late == 0:
		said = append(said, "No job is late.")
	}
	if len(said) == 0 {
		return "Nothing has been read from the nodes yet."
	}
	return strings.Join(said, " ")
}

// closedType is the error.type of a node whose connections were closed.
var closedType = redlock.ErrorType(redlock.ErrClosed)

// nodesSentence says how many nodes vote.
func (s *snapshot) nodesSentence() string {
	q := s.cluster().Quorum()
	if s.cluster().OthersHaveMore() {
		return fmt.Sprintf("%d of %d nodes vote for this page, and enough for replicas.", q.Votes, q.Total)
	}
	return q.Sentence()
}
