package main

import (
	"fmt"
	"os"
	"strings"
)

// Where the table goes in a document.
const (
	tableBegin = "<!-- The table is written by go run ./internal/mutants -markdown. -->\n"
	tableEnd   = "<!-- End of the table. -->\n"
)

// table renders verdicts as Markdown.
func table(verdicts []*verdict) string {
	var b strings.Builder
	b.WriteString("| mutant | the rule that it breaks | caught by | and by |\n| --- | --- | --- | --- |\n")
	for _, v := range verdicts {
		by := "**nothing**"
		switch {
		case v.err != nil:
			by = "**error**"
		case !v.survived():
			by = "`" + strings.Join(v.caughtBy, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.mutant.Name, cell(v.mutant.Rule), by, v.mutant.others())
	}
	return b.String()
}

// others is what else finds the break.
func (m *Mutant) others() string {
	var also []string
	if m.Model != "" {
		also = append(also, "model: "+cell(m.Model))
	}
	if m.Chaos != "" {
		also = append(also, "chaos `"+m.Chaos+"`")
	}
	return strings.Join(also, "; ")
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// insertTable puts the table into a document, between its marks.
func insertTable(document, table string) (string, error) {
	head, rest, ok := strings.Cut(document, tableBegin)
	_, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("mutants: the document has no place for the table: it needs the lines %q and %q", tableBegin, tableEnd)
	}
	return head + tableBegin + "\n" + table + "\n" + tableEnd + tail, nil
}

// writeTable puts the table into a file, which is made if it does not exist.
func writeTable(name, table string) error {
	document, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		document, err = []byte(tableBegin+tableEnd), nil
	}
	if err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	text, err := insertTable(string(document), table)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	return nil
}
