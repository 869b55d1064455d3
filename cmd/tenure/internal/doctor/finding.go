package doctor

import (
	"cmp"
	"slices"

	"github.com/tenure-dev/tenure/internal/view"
)

// Report is the result of Examine.
type Report struct {
	Now      view.Time `json:"now"`
	Prefix   string    `json:"prefix"`
	Replicas int       `json:"replicas"` // number of live replicas, as far as the nodes have been told
	Worst    Severity  `json:"worst"`    // empty if there are no findings
	Nodes    []*Node   `json:"nodes"`
	Findings []Finding `json:"findings"` // the worst first
}

// Node is the state of a node.
type Node struct {
	Node      string    `json:"node"`
	Votes     *bool     `json:"votes"`   // null if the node refuses this user, so that it is not known
	Version   string    `json:"version"` // Valkey's version, or Redis's if the server has no other
	Uptime    view.Span `json:"uptime_ms"`
	ClockSkew *float64  `json:"clock_skew_ms"` // over the median of the servers' clocks; null if not known
}

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Fault   Severity = "fault"   // act now: a node does not vote, or two leases could be live at once
	Warning Severity = "warning" // everything works now, but may not when something else fails
	Note    Severity = "note"    // good to know
)

// Finding is a problem of some nodes or of all.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`  // stable; a redlock.Condition if there is one for it
	Nodes    []string `json:"nodes"` // host:port; empty for all nodes or for this process
	Seen     string   `json:"seen"`
	Advice   string   `json:"advice"`
}

// rank orders severities: the worst is the lowest.
func (s Severity) rank() int { return slices.Index([]Severity{Fault, Warning, Note}, s) }

// findings is a list of findings. Nodes with the same problem share one finding.
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

// has reports whether one of the codes was found for the node.
func (all findings) has(node string, codes ...string) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return slices.Contains(codes, f.Code) && slices.Contains(f.Nodes, node) })
}

// sorted returns the findings, the worst first.
func (all findings) sorted() []Finding {
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	return append([]Finding{}, all...)
}
