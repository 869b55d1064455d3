package main

import (
	"context"
	"fmt"

	"github.com/tenure-dev/tenure/tools/dashtest/dashboard"
	"github.com/tenure-dev/tenure/tools/dashtest/prometheus"
	"github.com/tenure-dev/tenure/tools/dashtest/verdict"
)

// ask asks everything: the dashboard's variables, then its panels, then the rules.
func (l *live) ask(ctx context.Context, rules []prometheus.FileRule) ([]verdict.Row, error) {
	judge := &verdict.Judge{API: l.client, Start: l.start, End: l.end, Step: step}
	grafana := dashboard.Interpolation{
		Range: l.end.Sub(l.start), Interval: step, Scrape: scrapeEvery, Values: make(map[string][]string),
	}
	rows, err := l.variables(ctx, grafana)
	if err != nil {
		return nil, err
	}
	rows = append(rows, l.panels(ctx, judge, grafana)...)
	for _, r := range rules {
		if r.Alert != "" {
			rows = append(rows, judge.Alert(ctx, "alert "+r.Alert, r.Expr))
		} else {
			rows = append(rows, judge.Recording(ctx, "record "+r.Record, r.Expr))
		}
	}
	loaded, err := l.client.Rules(ctx)
	if err != nil {
		return nil, err
	}
	return append(rows, verdict.Health(rules, loaded)...), nil
}

// variables asks for the values of each variable, in order, because later ones use earlier ones.
// All values are selected, by name.
func (l *live) variables(ctx context.Context, grafana dashboard.Interpolation) ([]verdict.Row, error) {
	var rows []verdict.Row
	for _, v := range l.dashboard.Variables() {
		selector, label, err := dashboard.LabelValues(v.Text())
		if err != nil {
			return nil, err
		}
		if selector, err = grafana.Expand(selector); err != nil {
			return nil, err
		}
		row := verdict.Row{Origin: "variable " + v.Name, Expr: fmt.Sprintf("label_values(%s, %s)", selector, label)}
		values, err := l.client.LabelValues(ctx, label, selector, l.start, l.end)
		switch {
		case err != nil:
			row.Problem = err.Error()
		case len(values) == 0:
			row.Problem = "the variable has no values"
		}
		row.Note = fmt.Sprintf("values: %v", values)
		grafana.Values[v.Name] = values
		rows = append(rows, row)
	}
	return rows, nil
}

// panels asks the queries of the panels.
func (l *live) panels(ctx context.Context, judge *verdict.Judge, grafana dashboard.Interpolation) []verdict.Row {
	var rows []verdict.Row
	for _, p := range l.dashboard.All() {
		for _, t := range p.Targets {
			origin := p.Title + " " + t.RefID
			expr, err := grafana.Expand(t.Expr)
			if err != nil {
				rows = append(rows, verdict.Row{Origin: origin, Expr: t.Expr, Problem: err.Error()})
				continue
			}
			rows = append(rows, judge.Panel(ctx, origin, expr, t.Instant))
		}
	}
	return rows
}
