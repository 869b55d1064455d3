package verdict_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/dashtest/prometheus"
	"github.com/tenure-dev/tenure/tools/dashtest/verdict"
)

// known are the series that the fake Prometheus has.
var known = []map[string]string{
	{"__name__": "held", "job": "tenure", "tenure_lease_name": "a", "instance": "1"},
	{"__name__": "held", "job": "tenure", "tenure_lease_name": "b", "instance": "1"},
	{"__name__": "operations", "job": "tenure", "operation": "acquire"},
	{"__name__": "runs", "job": "tenure", "tenure_outcome": "success"},
}

// fake is a Prometheus whose series never change. Of an expression it evaluates none: it answers
// with what answers says, or else with a 1 for each series that its first selector matches.
type fake struct{ answers map[string]string }

func (f fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch path := strings.TrimPrefix(r.URL.Path, "/api/v1/"); path {
	case "series":
		reply(w, matching(query.Get("match[]")))
	case "query", "query_range":
		expr := query.Get("query")
		if strings.Count(expr, "(") != strings.Count(expr, ")") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"status":"error","errorType":"bad_data","error":"parse error: unclosed left parenthesis"}`))
			return
		}
		value, ok := f.answers[expr]
		if !ok {
			value = "1"
		}
		result := []any{}
		for _, labels := range matching(expr) {
			if value != "" {
				result = append(result, map[string]any{"metric": labels, "values": []any{[]any{1700000000, value}}})
			}
		}
		reply(w, map[string]any{"resultType": "matrix", "result": result})
	default:
		http.NotFound(w, r)
	}
}

func reply(w http.ResponseWriter, data any) {
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data})
}

var (
	selector = regexp.MustCompile(`([a-z_]+)(?:\{([^}]*)\})?\)*(?: |$)`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!=|=)"([^"]*)"`)
)

func matching(text string) []map[string]string {
	match := selector.FindStringSubmatch(text)
	found := []map[string]string{}
	for _, labels := range known {
		fits := match != nil && labels["__name__"] == match[1]
		if fits {
			for _, m := range matcher.FindAllStringSubmatch(match[2], -1) {
				equal := regexp.MustCompile("^(?:" + m[3] + ")$").MatchString(labels[m[1]])
				fits = fits && equal == (m[2] != "!=")
			}
		}
		if fits {
			found = append(found, labels)
		}
	}
	return found
}

func judge(t *testing.T, answers map[string]string) *verdict.Judge {
	server := httptest.NewServer(fake{answers})
	t.Cleanup(server.Close)
	return &verdict.Judge{
		API:   &prometheus.Client{URL: server.URL, HTTP: server.Client()},
		Start: time.Unix(1700000000, 0), End: time.Unix(1700000010, 0), Step: time.Second,
	}
}

func TestPanel(t *testing.T) {
	const nan, none = "NaN", ""
	for _, tc := range []struct{ name, expr, answer, problem, note string }{
		{name: "there", expr: `sum(held)`, answer: "1"},
		{name: "a parse error", expr: `sum(held`, problem: "parse error"},
		{name: "a misspelt metric", expr: `sum(hold)`, problem: "there is no metric hold"},
		{name: "an empty answer", expr: `held{tenure_lease_name="a"}`, answer: none, problem: "the answer is empty"},
		{name: "no number", expr: `histogram_quantile(0.5, held)`, answer: nan, problem: "the answer is empty"},
		{name: "a misspelt label", expr: `held{leese_name="a"}`, problem: "held has no label leese_name"},
		{name: "a value that nothing has", expr: `held{tenure_lease_name="c"}`, problem: `nothing matches held{tenure_lease_name="c"}`},
		{name: "a misspelt metric behind or", expr: `held or hold`, answer: "1", problem: "there is no metric hold"},
		{name: "a misspelt label behind or", expr: `held or held{jop="tenure"} * 0`, answer: "1", problem: "held has no label jop"},
		{name: "no failure behind or", expr: `operations or operations{error_type!=""}`, answer: "1", note: `no operations{error_type!=""} in this run`},
		{name: "no such outcome behind or", expr: `runs or runs{tenure_outcome="panic"}`, answer: "1", note: `no runs{tenure_outcome="panic"} in this run`},
		{name: "a misspelt outcome", expr: `runs or runs{tenure_outcome="panick"}`, answer: "1", problem: `runs never has tenure_outcome "panick"`},
		{name: "a misspelt outcome among others", expr: `runs or runs{tenure_outcome=~"panic|eror"}`, answer: "1", problem: `runs never has tenure_outcome "eror"`},
		{name: "no failure, alone", expr: `operations{error_type!=""}`, answer: "1", problem: "the answer is empty"},
		{name: "no failure in another service", expr: `operations or operations{error_type!="", job="x"}`, answer: "1", problem: `nothing matches operations{job="x"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			row := judge(t, map[string]string{tc.expr: tc.answer}).Panel(context.Background(), tc.name, tc.expr, false)
			check(t, row, tc.problem, tc.note)
		})
	}
}

func check(t *testing.T, row verdict.Row, problem, note string) {
	t.Helper()
	if problem == "" {
		assert.Empty(t, row.Problem)
	} else {
		assert.Contains(t, row.Problem, problem)
	}
	if note != "" {
		assert.Contains(t, row.Note, note)
	}
}

func TestAlert(t *testing.T) {
	for _, tc := range []struct {
		name, expr    string
		answers       map[string]string
		problem, note string
	}{
		{name: "fires", expr: `held > 0`},
		{name: "quiet", expr: `held > 5`, answers: map[string]string{`held > 5`: ""}, note: "quiet: it compares {instance=1, tenure_lease_name=a} 1"},
		{name: "quiet for a wrong name", expr: `hold > 5`, problem: "its part is empty: hold"},
		{name: "quiet for labels that do not match", expr: `held / runs > 5`, answers: map[string]string{`held / runs > 5`: "", `held / runs`: ""}, problem: "its part is empty: held / runs"},
		{name: "quiet for want of a failure", expr: `operations{error_type="timeout"} > 0`, note: "has had no cause"},
		{name: "quiet, nothing is absent", expr: `absent(held)`, answers: map[string]string{`absent(held)`: ""}, note: "nothing is absent"},
		{name: "quiet, absent of a wrong name", expr: `absent(hold)`, answers: map[string]string{`absent(hold)`: ""}, problem: "there is no metric hold"},
		{name: "cannot be parsed", expr: `count(held > 5`, problem: "parse error"},
		{name: "a wrong part", expr: `held > 5 and hold > 1`, answers: map[string]string{`held > 5 and hold > 1`: ""}, problem: "its part is empty: hold"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			row := judge(t, tc.answers).Alert(context.Background(), tc.name, tc.expr)
			check(t, row, tc.problem, tc.note)
		})
	}
}

func TestHealth(t *testing.T) {
	files := []prometheus.FileRule{{Record: "a", Expr: "x"}, {Alert: "B", Expr: "y"}, {Record: "a", Expr: "z"}}
	well := []prometheus.Rule{{Name: "a", Health: "ok"}, {Name: "B", Health: "ok", State: "firing"}, {Name: "a", Health: "ok"}}
	rows := verdict.Health(files, well)
	require.Len(t, rows, 1)
	assert.Contains(t, rows[0].Note, "3 rules are evaluated, the health of each is ok; 1 alerts fire")

	ill := slices.Clone(well)
	ill[1] = prometheus.Rule{Name: "B", Health: "err", LastError: "many-to-many matching"}
	rows = verdict.Health(files, ill)
	require.Len(t, rows, 1)
	assert.Contains(t, rows[0].Problem, "many-to-many matching")

	rows = verdict.Health(files, well[:2])
	require.Len(t, rows, 1)
	assert.Contains(t, rows[0].Problem, "does not evaluate it")
}

func TestAnswers(t *testing.T) {
	answer := []prometheus.Series{
		{Labels: map[string]string{"a": "b"}, Points: []prometheus.Point{{Value: math.NaN()}}},
		{Labels: map[string]string{"__name__": "x", "job": "j", "otel_scope_name": "s", "c": "d"}, Points: []prometheus.Point{{Value: 0.25}, {Value: math.NaN()}}},
	}
	assert.Equal(t, 1, verdict.Values(answer))
	assert.Equal(t, 1, verdict.Filled(answer))
	assert.Equal(t, "{c=d} 0.25", verdict.Sample(answer))
	assert.Equal(t, "-", verdict.Sample(nil))
}

func TestAPrometheusThatIsGone(t *testing.T) {
	server := httptest.NewServer(fake{})
	j := &verdict.Judge{API: &prometheus.Client{URL: server.URL, HTTP: server.Client()}, Step: time.Second}
	server.Close()
	for _, row := range []verdict.Row{
		j.Panel(context.Background(), "p", "held", true), j.Recording(context.Background(), "r", "held"), j.Alert(context.Background(), "a", "held > 1"),
	} {
		assert.Contains(t, row.Problem, "connect", fmt.Sprint(row))
	}
}
