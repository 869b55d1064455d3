package web

import (
	"context"
	"net/http"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// electionDoc is an election.
type electionDoc struct {
	Name       string     `json:"name"`
	Leader     *leaderDoc `json:"leader,omitempty"`
	Candidates []string   `json:"candidates"`
	Terms      []termDoc  `json:"terms"` // the newest first
	Error      string     `json:"error,omitempty"`
	Read       moment     `json:"read"`
}

type leaderDoc struct {
	Identity  string `json:"identity"`
	Payload   string `json:"payload,omitempty"`
	Term      uint64 `json:"term"`
	Since     moment `json:"since,omitzero"`
	LeaseLeft span   `json:"lease_left_ms,omitzero"` // when it was read; absent for a key that does not expire

	Full span   `json:"-"`
	Read moment `json:"-"`
}

type termDoc struct {
	Number   uint64 `json:"number"`
	Identity string `json:"identity"`
	Began    moment `json:"began,omitzero"`
	Ended    moment `json:"ended,omitzero"`
	How      string `json:"how,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Gap      span   `json:"gap_ms,omitzero"`
	Sources  int    `json:"sources"`
}

// Lasted is how long a term that has ended was; zero if that is not known.
func (t termDoc) Lasted() span {
	if t.Began.IsZero() || t.Ended.IsZero() {
		return 0
	}
	return span(max(t.Ended.Sub(t.Began.Time), 0))
}

func newElectionDoc(e electionRow) electionDoc {
	d := electionDoc{Name: e.Name, Candidates: e.Candidates, Terms: []termDoc{}, Read: at(e.At)}
	if d.Candidates == nil {
		d.Candidates = []string{}
	}
	if e.Err != nil {
		d.Error = errorText(e.Err)
	}
	if l := e.Leader; l != nil {
		d.Leader = &leaderDoc{Identity: l.Identity, Payload: l.Payload, Term: l.Term, Since: at(l.Since), Full: span(e.Full), Read: d.Read}
		if l.LeaseLeft != redlock.NoExpiry {
			d.Leader.LeaseLeft = span(l.LeaseLeft)
		}
	}
	for _, t := range e.Terms {
		d.Terms = append(d.Terms, termDoc{
			Number: t.Number, Identity: t.Identity, Began: at(t.Began), Ended: at(t.Ended), How: t.How, Reason: t.Reason, Gap: span(t.Gap), Sources: t.Sources,
		})
	}
	return d
}

// LeaderName is the identity of the leader; empty for none.
func (d electionDoc) LeaderName() string {
	if d.Leader == nil {
		return ""
	}
	return d.Leader.Identity
}

// leaseLeft says for how long a leader leads unless its lease is extended.
func leaseLeft(l *leaderDoc) string {
	if l.LeaseLeft == 0 {
		return "it does not expire: something else has written the key"
	}
	return precise(max(l.LeaseLeft-span(time.Since(l.Read.Time)), 0)) + " left"
}

type electionsDoc struct {
	Elections []electionDoc `json:"elections"`

	Name string `json:"-"` // of the one that is asked for; empty for all
}

func (h *Handler) electionsDoc(_ context.Context, s *snapshot, r *http.Request) (any, int) {
	d := &electionsDoc{Elections: []electionDoc{}, Name: r.URL.Query().Get("name")}
	for _, e := range s.elections {
		if d.Name != "" && d.Name != e.Name {
			continue
		}
		d.Elections = append(d.Elections, newElectionDoc(e))
	}
	return d, http.StatusOK
}
