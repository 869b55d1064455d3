// Package verdict tells of each expression of a dashboard and of rules whether a Prometheus that
// has scraped the example answers it, and if it does not, whether that may be.
package verdict

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/tools/dashtest/prometheus"
	"github.com/tenure-dev/tenure/tools/dashtest/promql"
)

// API is what a Judge asks; a *prometheus.Client is one.
type API interface {
	QueryRange(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]prometheus.Series, error)
	Query(ctx context.Context, expr string, at time.Time) ([]prometheus.Series, error)
	Series(ctx context.Context, selector string, start, end time.Time) ([]map[string]string, error)
}

// Judge judges expressions by what a Prometheus knows of the time from Start to End.
type Judge struct {
	API        API
	Start, End time.Time
	Step       time.Duration
}

// Row is the verdict on an expression.
type Row struct {
	Origin  string // where the expression is from
	Expr    string
	Series  []prometheus.Series
	Note    string // why an empty answer is in order
	Problem string // what is wrong; empty: nothing
}

// Panel judges an expression of a dashboard: it has to have a value, and so has everything that it
// selects.
func (j *Judge) Panel(ctx context.Context, origin, expr string, instant bool) Row {
	row := Row{Origin: origin, Expr: expr}
	var err error
	if instant {
		row.Series, err = j.API.Query(ctx, expr, j.End)
	} else {
		row.Series, err = j.API.QueryRange(ctx, expr, j.Start, j.End, j.Step)
	}
	switch {
	case err != nil:
		row.Problem = err.Error()
	case Values(row.Series) == 0:
		row.Problem = emptyAnswer
	}
	j.selectors(ctx, &row)
	return row
}

// Recording judges the expression of a recording rule: as Panel does.
func (j *Judge) Recording(ctx context.Context, origin, expr string) Row {
	return j.Panel(ctx, origin, expr, false)
}

// Alert judges the expression of an alert. It may be empty, because an alert that is quiet is; but
// what it compares has to have a value, and so has everything that it selects.
func (j *Judge) Alert(ctx context.Context, origin, expr string) Row {
	row := Row{Origin: origin, Expr: expr}
	var err error
	if row.Series, err = j.API.QueryRange(ctx, expr, j.Start, j.End, j.Step); err != nil {
		row.Problem = err.Error()
		return row
	}
	if Values(row.Series) == 0 {
		var bases []string
		for _, operand := range promql.Operands(expr) {
			if row.Problem == "" {
				bases = append(bases, j.base(ctx, &row, operand))
			}
		}
		if row.Problem == "" {
			row.Note = "quiet: " + strings.Join(bases, "; ")
		}
	}
	j.selectors(ctx, &row)
	return row
}

// base evaluates what an alert compares. An absent() is empty because it is well.
func (j *Judge) base(ctx context.Context, row *Row, operand string) string {
	answer, err := j.API.QueryRange(ctx, operand, j.Start, j.End, j.Step)
	switch {
	case err != nil:
		row.Problem = fmt.Sprintf("its part %s: %v", operand, err)
	case Values(answer) > 0:
		return "it compares " + Sample(answer)
	case strings.HasPrefix(operand, "absent"):
		return "nothing is absent"
	case j.rare(ctx, operand):
		return "its part " + operand + " has had no cause"
	default:
		row.Problem = "its part is empty: " + operand
	}
	return ""
}

// rare reports whether an expression selects something that is there only when something is wrong.
func (j *Judge) rare(ctx context.Context, expr string) bool {
	for _, s := range promql.Selectors(expr) {
		if found, err := j.API.Series(ctx, s.String(), j.Start, j.End); err == nil && len(found) == 0 {
			if note, problem := j.excuse(ctx, s); note != "" && problem == "" {
				return true
			}
		}
	}
	return false
}

// Values counts the values of an answer that are numbers.
func Values(answer []prometheus.Series) int {
	count := 0
	for _, s := range answer {
		for _, p := range s.Points {
			if !math.IsNaN(p.Value) {
				count++
			}
		}
	}
	return count
}

// Filled counts the series of an answer that have a value.
func Filled(answer []prometheus.Series) int {
	count := 0
	for i := range answer {
		if Values(answer[i:i+1]) > 0 {
			count++
		}
	}
	return count
}

// Sample is the last value that is a number, of the first series that has one, with its labels.
func Sample(answer []prometheus.Series) string {
	for _, s := range answer {
		for i := len(s.Points) - 1; i >= 0; i-- {
			if v := s.Points[i].Value; !math.IsNaN(v) {
				return fmt.Sprintf("%s %.4g", labels(s.Labels), v)
			}
		}
	}
	return "-"
}
