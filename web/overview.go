package web

import (
	"context"
	"net/http"
	"slices"

	"github.com/tenure-dev/tenure/admin"
)

// overviewDoc is the start page.
type overviewDoc struct {
	Quorum    quorumDoc     `json:"quorum"`
	Replicas  int           `json:"replicas"`
	Jobs      jobCounts     `json:"jobs"`
	Elections []electionDoc `json:"elections"`
	Running   []*jobDoc     `json:"running"`
	Late      []*jobDoc     `json:"late"`
	Failing   []*jobDoc     `json:"failing"`
	Paused    []*jobDoc     `json:"paused"`
	Next      []*jobDoc     `json:"next"` // of the next ticks

	AllPaused bool `json:"-"` // by a pause of all jobs
}

const (
	// mostListed bounds each list of the start page, and nextListed that of ticks.
	mostListed = 20
	nextListed = 10
)

func (h *Handler) overviewDoc(_ context.Context, s *snapshot, _ *http.Request) (any, int) {
	d := &overviewDoc{
		Quorum: newQuorumDoc(s), Replicas: len(s.replicas), Jobs: countJobs(s.jobs), Elections: []electionDoc{},
		Running: []*jobDoc{}, Late: []*jobDoc{}, Failing: []*jobDoc{}, Paused: []*jobDoc{}, Next: []*jobDoc{},
	}
	for _, e := range s.elections[:min(len(s.elections), mostListed)] {
		d.Elections = append(d.Elections, newElectionDoc(e))
	}
	var next []*jobRow
	for _, row := range s.jobs {
		for state, list := range map[string]*[]*jobDoc{stateRunning: &d.Running, stateLate: &d.Late, stateFailing: &d.Failing, statePaused: &d.Paused} {
			if row.isIn(state) && len(*list) < mostListed {
				*list = append(*list, h.newJobDoc(s, row))
			}
		}
		d.AllPaused = d.AllPaused || row.Paused != nil && row.Paused.Target == admin.AllJobs
		if !row.Next.IsZero() && !row.Late && row.Paused == nil {
			next = append(next, row)
		}
	}
	slices.SortStableFunc(next, func(x, y *jobRow) int { return x.Next.Compare(y.Next) })
	for _, row := range next[:min(len(next), nextListed)] {
		d.Next = append(d.Next, h.newJobDoc(s, row))
	}
	return d, http.StatusOK
}
