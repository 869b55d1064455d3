package doctor

import (
	"cmp"
	"slices"

	"github.com/tenure-dev/tenure/internal/view"
)

// Report is what was found.
type Report struct {
	Now      view.Time `json:"now"`
	Prefix   string    `json:"prefix"`
	Replicas int       `json:"replicas"` // that live, as far as the nodes have been told
	Worst    Severity  `json:"worst"`    // empty for nothing
	Nodes    []*Node   `json:"nodes"`
	Findings []Finding `json:"findings"` // the worst first
}

// Node is how a node is.
type Node struct {
	Node      string    `json:"node"`
	Votes     *bool     `json:"votes"`   // null if it refuses this user, who may not know
	Version   string    `json:"version"` // of Valkey where the server says it, or else of Redis
	Uptime    view.Span `json:"uptime_ms"`
	ClockSkew *float64  `json:"clock_skew_ms"` // over the median of the servers' clocks; null where it is not known
}

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Fault   Severity = "fault"   // a node does not vote, or two leases could be live at once: act now
	Warning Severity = "warning" // it works now, and may not when something else fails
	Note    Severity = "note"    // good to know
)

// Finding is something that is wrong, of some nodes or of all.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`  // stable; a redlock.Condition where there is one
	Nodes    []string `json:"nodes"` // host:port; empty for all of them, or for the process
	Seen     string   `json:"seen"`
	Advice   string   `json:"advice"`
}

// rank orders severities, the worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Fault, Warning, Note}, s) }

// findings collects. Nodes of which the same is seen are in one finding.
type findings []Finding

func (all *findings) add(f Finding) {
	for i := range *all {
		if is := &(*all)[i]; is.Severity == f.Severity && is.Code == f.Code && is.Seen == f.Seen {
			for _, n := range f.Nodes {
				if !slices.Contains(is.Nodes, n) {
					is.Nodes = append(is.Nodes, n)
				}
			}
			return
		}
	}
	f.Nodes = append([]string{}, f.Nodes...)
	*all = append(*all, f)
}

// has reports whether something is known of a node already.
func (all findings) has(node string, codes ...string) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return slices.Contains(codes, f.Code) && slices.Contains(f.Nodes, node) })
}

// sorted are the findings, the worst first.
func (all findings) sorted() []Finding {
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	return append([]Finding{}, all...)
}
