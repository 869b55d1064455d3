package web

import (
	"context"
	"net/http"
	"time"

	"github.com/tenure-dev/tenure/admin"
)

// skipDoc is why ticks were not run.
type skipDoc struct {
	Job     string `json:"job"`
	Reason  string `json:"reason"`
	Tick    moment `json:"tick,omitzero"` // the last
	Count   int    `json:"count"`
	Replica string `json:"replica"`
	By      string `json:"by,omitempty"`
	At      moment `json:"at,omitzero"`
	Sources int    `json:"sources"`
}

func newSkipDoc(s *admin.Skip) skipDoc {
	return skipDoc{Job: s.Job, Reason: s.Reason, Tick: at(s.Tick), Count: s.Count, Replica: s.Replica, By: s.By, At: at(s.At), Sources: s.Sources}
}

// oneJobDoc is a job with all that is known of it.
type oneJobDoc struct {
	Job   *jobDoc   `json:"job"`
	Skips []skipDoc `json:"skips,omitzero"`  // absent if they were not read
	Error string    `json:"error,omitempty"` // why it is not as it is now

	Local string `json:"-"` // the next tick in the zone of the schedule
}

func (d *oneJobDoc) pageTitle() string {
	if d.Job == nil {
		return "Job"
	}
	return shortened(visible(d.Job.Name), 60)
}

func (h *Handler) jobDoc(ctx context.Context, s *snapshot, r *http.Request) (any, int) {
	name := r.URL.Query().Get("name")
	d := &oneJobDoc{}
	if name == "" {
		return d, http.StatusNotFound
	}
	is := h.details.get(ctx, name)
	if is.Gone {
		return d, http.StatusNotFound
	}
	if is.Err != nil {
		d.Error = errorText(is.Err)
	}
	if is.jobRow == nil { // it is not known whether there is one
		is.jobRow = &jobRow{}
		is.Name, is.JobStatus.Err = name, is.Err
	}
	d.Job = h.newJobDoc(s, is.jobRow)
	if is.Skips != nil {
		d.Skips = []skipDoc{}
	}
	for i := range is.Skips {
		d.Skips = append(d.Skips, newSkipDoc(&is.Skips[i]))
	}
	if zone, err := time.LoadLocation(is.Zone); err == nil && len(is.Zone) > 0 && is.Zone != "UTC" && !d.Job.Next.IsZero() {
		d.Local = d.Job.Next.In(zone).Format("15:04:05")
	}
	return d, http.StatusOK
}

// Policies are what the job does in special cases, in the order of the page.
func (d *oneJobDoc) Policies() [][2]string {
	var all [][2]string
	for _, p := range [][2]string{{"Delivery", d.Job.Delivery}, {"Catch-up", d.Job.CatchUp}, {"Overlap", d.Job.Overlap}, {"Program", d.Job.Program}} {
		if p[1] != "" {
			all = append(all, p)
		}
	}
	return all
}

// HasSkips reports whether the ticks that were not run were read.
func (d *oneJobDoc) HasSkips() bool { return d.Skips != nil }
