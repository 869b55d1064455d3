package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tenure-dev/tenure/tools/dashtest/verdict"
)

// table prints what was asked and answered, and returns how many rows have a problem.
func table(w io.Writer, rows []verdict.Row) int {
	problems := 0
	fmt.Fprintf(w, "%-6s %6s  %-52s %s\n", "", "series", "asked by", "last value of a series")
	for _, row := range rows {
		mark := "ok"
		if row.Problem != "" {
			mark = "FAILED"
			problems++
		}
		fmt.Fprintf(w, "%-6s %6d  %-52s %s\n", mark, verdict.Filled(row.Series), row.Origin, verdict.Sample(row.Series))
		fmt.Fprintf(w, "%15s %s\n", "", strings.Join(strings.Fields(row.Expr), " "))
		if row.Note != "" {
			fmt.Fprintf(w, "%15s (%s)\n", "", row.Note)
		}
		if row.Problem != "" {
			fmt.Fprintf(w, "%15s PROBLEM: %s\n", "", row.Problem)
		}
	}
	return problems
}
