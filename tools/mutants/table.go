package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

// Where the table goes in a document.
const (
	tableBegin = "<!-- The table is written by go run ./tools/mutants -markdown. -->\n"
	tableEnd   = "<!-- End of the table. -->\n"
)

// table renders all mutants as Markdown. Those without a verdict keep what caught them according to
// the old table.
func table(all []Mutant, verdicts []*verdict, old string) string {
	by := caughtBefore(old)
	for _, v := range verdicts {
		switch {
		case v.err != nil:
			by[v.mutant.Name] = "**error**"
		case v.survived():
			by[v.mutant.Name] = "**nothing**"
		default:
			by[v.mutant.Name] = "`" + strings.Join(v.caughtBy, "`, `") + "`"
		}
	}
	var b strings.Builder
	b.WriteString("| mutant | the rule that it breaks | caught by | and by |\n| --- | --- | --- | --- |\n")
	for _, m := range all {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, cell(m.Rule), cmp.Or(by[m.Name], "**not run**"), m.others())
	}
	return b.String()
}

// caughtBefore reads what caught each mutant from a table.
func caughtBefore(table string) map[string]string {
	by := make(map[string]string)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			by[strings.Trim(cells[0], "|` ")] = cells[2]
		}
	}
	return by
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

// cutTable returns the table of a document, and what is before it and behind it, with its marks.
func cutTable(document string) (head, table, tail string, err error) {
	head, rest, ok := strings.Cut(document, tableBegin)
	table, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", "", "", fmt.Errorf("mutants: the document has no place for the table: it needs the lines %q and %q", tableBegin, tableEnd)
	}
	return head + tableBegin, table, tableEnd + tail, nil
}

// writeTable brings the table of a file up to date. The file is made if it does not exist.
func writeTable(name string, all []Mutant, verdicts []*verdict) error {
	document, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		document, err = []byte(tableBegin+tableEnd), nil
	}
	if err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	head, old, tail, err := cutTable(string(document))
	if err != nil {
		return err
	}
	text := head + "\n" + table(all, verdicts, old) + "\n" + tail
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	return nil
}
