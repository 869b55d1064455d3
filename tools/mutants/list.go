package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed list/*.txt
var listFiles embed.FS

// mutants returns all of them, in the order of the table: by file, and as they are in it.
func mutants() ([]Mutant, error) { return readLists(listFiles, "list/*.txt") }

// readLists reads the lists whose names match a pattern.
func readLists(files fs.FS, pattern string) ([]Mutant, error) {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	var all []Mutant
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("mutants: %w", err)
		}
		list, err := parseList(path.Base(name), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// parseList reads a list: blocks of lines, with empty lines between them. docs/mutants.md has the
// format.
func parseList(file, text string) ([]Mutant, error) {
	var list []Mutant
	var m *Mutant // of the block that is being read
	first := 0    // its first line
	for i, line := range strings.Split(text+"\n", "\n") {
		var err error
		switch {
		case strings.HasPrefix(line, "#"), line == "" && m == nil:
		case line == "":
			err = m.complete()
			m, i = nil, first
		case m == nil:
			list = append(list, Mutant{})
			m, first = &list[len(list)-1], i
			err = m.head(line)
		default:
			err = m.line(line)
		}
		if err != nil {
			return nil, fmt.Errorf("mutants: %s:%d: %w", file, i+1, err)
		}
	}
	return list, nil
}

var mutantName = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// head reads the first line of a block.
func (m *Mutant) head(line string) error {
	var ok bool
	m.Name, m.Rule, ok = strings.Cut(line, ": ")
	if !ok || !mutantName.MatchString(m.Name) {
		return fmt.Errorf("a block begins with name-of-the-mutant: The rule that it breaks. This is %q", line)
	}
	return nil
}

// line reads another line of a block.
func (m *Mutant) line(line string) error {
	key, value, _ := strings.Cut(line, " ")
	if value == "" && key != "-" {
		return fmt.Errorf("%q has no value", line)
	}
	switch {
	case key == "-":
		e := Edit{Anchor: m.Name, Old: value}
		if n := len(m.Edits) + 1; n > 1 {
			e.Anchor += "/" + strconv.Itoa(n)
		}
		m.Edits = append(m.Edits, e)
		return nil
	case key == "+":
		return m.replacement(value)
	case strings.HasPrefix(key, "."):
		m.Checks = append(m.Checks, Check{Package: strings.TrimSuffix(key, ":"), Tests: strings.Fields(value)})
		return nil
	case key == "model:":
		return once(&m.Model, key, value)
	case key == "chaos:":
		return once(&m.Chaos, key, value)
	case key == "often:", key == "dies:":
		if len(m.Checks) == 0 {
			return fmt.Errorf("%s stands below the tests that it is about", key)
		}
		return m.Checks[len(m.Checks)-1].line(key, value)
	}
	return fmt.Errorf("%q is no line of a block: those begin with -, +, ./package:, dies:, often:, model: or chaos:, and a value", line)
}

// replacement reads a line of an edit's new text.
func (m *Mutant) replacement(text string) error {
	if len(m.Edits) == 0 {
		return errors.New("+ stands below the line with - that it replaces")
	}
	e := &m.Edits[len(m.Edits)-1]
	if e.New != "" {
		e.New += "\n"
	}
	e.New += text
	return nil
}

// line reads what else is to be known of a check.
func (c *Check) line(key, value string) error {
	if key == "dies:" {
		return once(&c.Dies, key, value)
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 2 || c.Often != 0 {
		return fmt.Errorf("often: %s is not a number of runs, 2 at least, given once", value)
	}
	c.Often = n
	return nil
}

func once(field *string, key, value string) error {
	if *field != "" {
		return fmt.Errorf("%s is given twice", key)
	}
	*field = value
	return nil
}

// complete returns an error if the block lacks something.
func (m *Mutant) complete() error {
	switch {
	case len(m.Edits) == 0:
		return fmt.Errorf("%s has no edit: a line with - and the old text", m.Name)
	case slices.ContainsFunc(m.Edits, func(e Edit) bool { return e.Old != "" && e.Old == e.New }):
		return fmt.Errorf("%s: an edit changes nothing", m.Name)
	case len(m.Checks) == 0:
		return fmt.Errorf("%s names no tests: ./package: TestOne TestTwo", m.Name)
	}
	return nil
}
