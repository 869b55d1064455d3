package verdict

import (
	"fmt"

	"github.com/tenure-dev/tenure/tools/dashtest/prometheus"
)

// Health compares the rules of files with those that a Prometheus evaluates: each has to be there,
// and well. There is a row for each that is not, and one for all.
func Health(files []prometheus.FileRule, loaded []prometheus.Rule) []Row {
	evaluated := make(map[string]int)
	var rows []Row
	firing := 0
	for _, r := range loaded {
		evaluated[r.Name]++
		if r.State == "firing" {
			firing++
		}
		if r.Health != "ok" {
			problem := fmt.Sprintf("its health is %q: %s", r.Health, r.LastError)
			rows = append(rows, Row{Origin: "rule " + r.Name, Expr: r.Query, Problem: problem})
		}
	}
	for _, f := range files {
		if evaluated[f.Name()] == 0 {
			rows = append(rows, Row{Origin: "rule " + f.Name(), Expr: f.Expr,
				Problem: "Prometheus does not evaluate it: is its file in rule_files?"})
		}
		evaluated[f.Name()]--
	}
	if len(rows) == 0 {
		rows = append(rows, Row{Origin: "all rules", Expr: "/api/v1/rules",
			Note: fmt.Sprintf("%d rules are evaluated, the health of each is ok; %d alerts fire", len(loaded), firing)})
	}
	return rows
}
