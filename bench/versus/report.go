package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Where the report goes in a document.
const (
	reportBegin = "<!-- The report is written by go run ./versus -markdown, in bench. -->\n"
	reportEnd   = "<!-- End of the report. -->\n"
)

// report is all that a run found.
type report struct {
	Machine *machine    `json:"machine"`
	Size    string      `json:"size"`
	Boards  []*board    `json:"rows"`
	Targets []judgement `json:"targets"`
}

// caveats are what a reader has to know.
const caveats = "Medians of the rounds, and in parentheses the least and the most; ratios are those of the same round. The *floor* is no lock: bare valkey-go, a connection and a goroutine a " +
	"node, SET NX PX and a script that compares and deletes, and on with the quorum-th reply. It has one owner, no validity, no token, no gate, no timeout and no order. " +
	"*Floor, batching* has one writer a node, which sends what is waiting as one pipeline, with one call of a script for all releases. " +
	"*Floor, next known* hands over: a release calls the next, which this process knows, so there is no queue. " +
	"A library on one server does a fifth of the work, and is gone with that server. " +
	"CPU is that of a pair: the client's from getrusage, a server's from INFO cpu, the mean of those that the rival locks on. "

func (r *report) markdown() string {
	var b strings.Builder
	r.Machine.markdown(&b)
	if r.Size != fullSize().name {
		fmt.Fprintf(&b, "A **%s** run: the sizes are too small for figures to be kept.\n\n", r.Size)
	}
	b.WriteString(caveats)
	if most, seen := r.foreign(); seen {
		fmt.Fprintf(&b, "Other processes took at most %.1f %% of the processors' time in a row.", 100*most)
	}
	b.WriteString("\n\n")
	missedTargets(&b, r.Targets)
	for i := 0; i < len(r.Boards); {
		group := r.Boards[i : i+1]
		for i += len(group); i < len(r.Boards) && r.Boards[i].Title == group[0].Title; i++ {
			group = group[:len(group)+1]
		}
		boards(group).markdown(&b)
	}
	return b.String()
}

// foreign is the most that others took in a row, of all processors' time, where that can be seen.
func (r *report) foreign() (most float64, seen bool) {
	for _, b := range r.Boards {
		if b.Foreign != nil {
			most, seen = max(most, *b.Foreign), true
		}
	}
	return most, seen
}

// insertReport puts the report into a document, between its marks.
func insertReport(document, text string) (string, error) {
	head, rest, ok := strings.Cut(document, reportBegin)
	_, tail, ok2 := strings.Cut(rest, reportEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("versus: the document has no place for the report: it needs the lines %q and %q", reportBegin, reportEnd)
	}
	return head + reportBegin + "\n" + text + reportEnd + tail, nil
}

// writeMarkdown puts the report into a file, which is made if it does not exist.
func (r *report) writeMarkdown(name string) error {
	document, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		document, err = []byte(reportBegin+reportEnd), nil
	}
	if err != nil {
		return fmt.Errorf("versus: %w", err)
	}
	text, err := insertReport(string(document), r.markdown())
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return fmt.Errorf("versus: %w", err)
	}
	return nil
}

func (r *report) writeJSON(name string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("versus: %w", err)
	}
	if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("versus: %w", err)
	}
	return nil
}
