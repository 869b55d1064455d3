package verdict

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenure-dev/tenure/tools/dashtest/promql"
)

// rareLabels are labels that a metric has only when something failed.
var rareLabels = map[string]bool{"error_type": true}

// rareValues are the values of labels that an ordinary run need not have. Each is one of package
// tenureotel's.
var rareValues = map[string][]string{
	"tenure_outcome": {"acquired", "held", "done", "canceled", "failed", "extended", "released", "lost", "success", "error", "panic"},
	"tenure_reason": {
		"deadline", "refused", "closed", // of a lease
		"elected", "shutdown", "resigned", "returned", "failed", "drain_timeout", // of a term
		"held", "done", "overlap", "not_leader", "refused", "ahead", "quarantined", "no_quorum", "timeout", "superseded", "missed",
		"stopped", "other", "skipped", // of a tick
		"release", "expiry", "released", // of a hand-over, of a hold
	},
	"tenure_operation": {"acquire", "agree", "extend", "release"},
	"tenure_to":        {"leader", "follower"},
}

// selectors finds among what a row's expression selects what is not there.
func (j *Judge) selectors(ctx context.Context, row *Row) {
	for _, s := range promql.Selectors(row.Expr) {
		if row.Problem != "" && row.Problem != emptyAnswer {
			return
		}
		found, err := j.API.Series(ctx, s.String(), j.Start, j.End)
		if err != nil {
			row.Problem = fmt.Sprintf("%s: %v", s, err)
			return
		}
		if len(found) > 0 {
			continue
		}
		note, problem := j.excuse(ctx, s)
		if problem != "" {
			row.Problem = problem
		} else if row.Note == "" {
			row.Note = note
		}
	}
}

// excuse says why nothing matches a selector: a note if that is in order, and otherwise a problem.
func (j *Judge) excuse(ctx context.Context, s promql.Selector) (note, problem string) {
	all, err := j.API.Series(ctx, s.Metric, j.Start, j.End)
	switch {
	case err != nil:
		return "", fmt.Sprintf("%s: %v", s.Metric, err)
	case len(all) == 0:
		return "", "there is no metric " + s.Metric
	}
	for _, m := range s.Matchers {
		if !rareLabels[m.Label] && !slices.ContainsFunc(all, func(l map[string]string) bool { return l[m.Label] != "" }) {
			return "", fmt.Sprintf("%s has no label %s", s.Metric, m.Label)
		}
		if values := rareValues[m.Label]; values != nil {
			for _, v := range strings.Split(strings.Trim(m.Value, "\"'`"), "|") {
				if strings.Trim(v, "().*+") != "" && !slices.Contains(values, strings.Trim(v, "()")) {
					return "", fmt.Sprintf("%s never has %s %q", s.Metric, m.Label, v)
				}
			}
		}
	}
	general := s.Without(func(m promql.Matcher) bool { return rareLabels[m.Label] || rareValues[m.Label] != nil })
	matching, err := j.API.Series(ctx, general.String(), j.Start, j.End)
	switch {
	case err != nil:
		return "", fmt.Sprintf("%s: %v", general, err)
	case len(matching) == 0:
		return "", fmt.Sprintf("nothing matches %s", general)
	}
	return fmt.Sprintf("no %s in this run", s), ""
}

const emptyAnswer = "the answer is empty"

// labels is the text of labels, without those that say nothing here.
func labels(all map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != "__name__" && name != "job" && !strings.HasPrefix(name, "otel_scope_") {
			parts = append(parts, name+"="+all[name])
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
