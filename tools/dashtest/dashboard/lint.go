package dashboard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Columns is the width of the grid.
const Columns = 24

// source is how everything refers to the data source.
const source = "${datasource}"

// kinds are the kinds of panels that the dashboard is made of.
var kinds = []string{"row", "timeseries", "state-timeline", "stat"}

// builtIn are the variables that Grafana sets.
var builtIn = []string{"__rate_interval", "__interval", "__range", "__range_s"}

var (
	stableUID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	ranged    = regexp.MustCompile(`\b(rate|irate|increase|delta|deriv)\s*\(`)
	window    = regexp.MustCompile(`\[([^\]]*)\]`)
	variables = regexp.MustCompile(`\$\{?(\w+)`)
	leaders   = regexp.MustCompile(`\bsum\b.*\btenure_election_leader\b`)
)

// Lint returns what is wrong with a dashboard as far as its file tells: what would keep it from
// working on another Grafana than its author's, panels that lie on each other or do not say what
// they are for, rates over a fixed window.
func Lint(d *Dashboard) []string {
	l := &linter{dashboard: d}
	l.whole()
	for _, p := range d.All() {
		l.panel(p)
	}
	l.layout()
	l.variables()
	return l.problems
}

type linter struct {
	dashboard *Dashboard
	used      []string // names of variables
	problems  []string
}

func (l *linter) report(where, format string, args ...any) {
	l.problems = append(l.problems, where+": "+fmt.Sprintf(format, args...))
}

func (l *linter) whole() {
	d := l.dashboard
	if d.Inputs != nil || d.Requires != nil {
		l.report("dashboard", "it has __inputs or __requires, which provisioning does not fill in")
	}
	if d.ID != nil {
		l.report("dashboard", "id is the database's of one Grafana; leave it out")
	}
	if !stableUID.MatchString(d.UID) {
		l.report("dashboard", "uid %q is none that links can rely on", d.UID)
	}
	if d.SchemaVersion < 36 || d.SchemaVersion > 41 {
		l.report("dashboard", "schemaVersion %d is none of Grafana 10 or 11", d.SchemaVersion)
	}
	if !slices.ContainsFunc(d.Templating.List, func(v Variable) bool {
		return v.Name == "datasource" && v.Type == "datasource" && v.Text() == "prometheus"
	}) {
		l.report("dashboard", "it has no variable datasource of type datasource for prometheus")
	}
	l.used = append(l.used, "datasource")
}

func (l *linter) panel(p Panel) {
	where := fmt.Sprintf("panel %d %q", p.ID, p.Title)
	if p.Title == "" {
		l.report(where, "it has no title")
	}
	if !slices.Contains(kinds, p.Type) {
		l.report(where, "type %q is none of %v", p.Type, kinds)
	}
	if p.Type == "row" {
		return
	}
	if len(p.Description) < 40 || !strings.Contains(p.Description, "Normal:") {
		l.report(where, `the description does not say what it answers and what is normal ("Normal: ...")`)
	}
	if p.Field.Defaults.Unit == "" {
		l.report(where, "it has no unit")
	}
	l.source(where, p.Datasource)
	if len(p.Targets) == 0 {
		l.report(where, "it has no query")
	}
	ids := make(map[string]bool)
	for _, t := range p.Targets {
		if ids[t.RefID] {
			l.report(where, "two queries are %s", t.RefID)
		}
		ids[t.RefID] = true
		l.source(where+" "+t.RefID, t.Datasource)
		l.expression(where+" "+t.RefID, t.Expr)
	}
}

func (l *linter) source(where string, s *Datasource) {
	if s == nil || s.Type != "prometheus" || s.UID != source {
		l.report(where, "its data source is not the variable %s", source)
	}
}

func (l *linter) expression(where, expr string) {
	if strings.TrimSpace(expr) == "" {
		l.report(where, "it has no expression")
	}
	for _, at := range ranged.FindAllStringSubmatchIndex(expr, -1) {
		if w := window.FindStringSubmatch(expr[at[1]:]); w == nil || w[1] != "$__rate_interval" {
			l.report(where, "%s is not over [$__rate_interval]", expr[at[2]:at[3]])
		}
	}
	if leaders.MatchString(expr) {
		l.report(where, "it adds up tenure_election_leader: a process that was killed can leave its 1 behind; count lease expiries")
	}
	for _, match := range variables.FindAllStringSubmatch(expr, -1) {
		l.used = append(l.used, match[1])
	}
}

// layout finds panels that lie on each other or outside the grid.
func (l *linter) layout() {
	ids := make(map[int]bool)
	all := l.dashboard.All()
	for i, p := range all {
		where := fmt.Sprintf("panel %d %q", p.ID, p.Title)
		if p.ID <= 0 || ids[p.ID] {
			l.report(where, "its id is not its own")
		}
		ids[p.ID] = true
		g := p.Grid
		if g.X < 0 || g.Y < 0 || g.W <= 0 || g.H <= 0 || g.X+g.W > Columns {
			l.report(where, "%+v is not on the grid", g)
		}
		for _, q := range all[:i] {
			if g.overlaps(q.Grid) {
				l.report(where, "it lies on panel %d %q", q.ID, q.Title)
			}
		}
	}
}

func (g Grid) overlaps(o Grid) bool {
	return g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H
}

// variables finds variables that are not there, or that nothing uses.
func (l *linter) variables() {
	var known []string
	for _, v := range l.dashboard.Templating.List {
		where := "variable " + v.Name
		known = append(known, v.Name)
		if v.Type != "query" {
			continue
		}
		l.source(where, v.Datasource)
		selector, _, err := LabelValues(v.Text())
		if err != nil {
			l.report(where, "%v", err)
			continue
		}
		l.expression(where, selector)
	}
	for _, name := range l.used {
		if !slices.Contains(known, name) && !slices.Contains(builtIn, name) {
			l.report("dashboard", "nobody sets $%s", name)
		}
	}
	for _, name := range known {
		if !slices.Contains(l.used, name) {
			l.report("variable "+name, "nothing uses it")
		}
	}
}
