// Package history keeps what happened in journals that survive the SIGKILL of the process that
// writes them: one line and one write(2) for each record, on a clock that all processes share. The
// page cache keeps what was written; a crash of the machine is not survived and need not be.
package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Suffix is how the name of a journal's file ends; what is before it names the client.
const Suffix = ".jsonl"

// Writer appends to one journal. It is safe for concurrent use: the kernel appends each write in
// one piece (open(2), O_APPEND).
type Writer struct{ file *os.File }

// Create begins a journal, which several processes may share.
func Create(path string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("history: cannot begin: %w", err)
	}
	return &Writer{file: file}, nil
}

// Append writes anything that is marshalled as one line.
func (w *Writer) Append(record any) error {
	line, err := json.Marshal(record)
	if err == nil {
		_, err = w.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("history: cannot append: %w", err)
	}
	return nil
}

// Close ends the journal.
func (w *Writer) Close() error { return w.file.Close() }

// Read returns the records of one journal. The last line of a process that was killed may lack its
// end; it is left out, because what it told of had not been said.
func Read[R any](path string) ([]R, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("history: cannot read: %w", err)
	}
	var records []R
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			break
		}
		var r R
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("history: record %d of %s: %w", len(records)+1, filepath.Base(path), err)
		}
		records = append(records, r)
		text = rest
	}
	return records, nil
}

// ReadAll returns the records of all journals in a directory by the names of their clients.
func ReadAll[R any](dir string) (map[string][]R, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+Suffix))
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	all := make(map[string][]R, len(paths))
	for _, path := range paths {
		records, err := Read[R](path)
		if err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(filepath.Base(path), Suffix)] = records
	}
	return all, nil
}
