package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/gopher-lua/parse"
)

// Each defect has its text once in its file, and what it makes of that can be parsed; the tests
// that are to catch it are there.
func TestDefectsFitTheCode(t *testing.T) {
	root, err := repository()
	require.NoError(t, err)
	names, tests := make(map[string]bool), make(map[string]string)
	for _, d := range defects() {
		require.False(t, names[d.name], "%s is there twice", d.name)
		names[d.name] = true
		texts, err := d.broken(root)
		if err != nil {
			t.Error(err)
			continue
		}
		for file, text := range texts {
			if strings.HasSuffix(file, ".lua") {
				_, err = parse.Parse(strings.NewReader(text), file)
			} else {
				_, err = parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
			}
			if err != nil {
				t.Errorf("%s: %v", d.name, err)
			}
		}
		if tests[d.pkg] == "" {
			files, err := filepath.Glob(filepath.Join(root, d.pkg, "*_test.go"))
			require.NoError(t, err)
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				tests[d.pkg] += string(text)
			}
		}
		for name := range strings.SplitSeq(d.tests, "|") {
			if !regexp.MustCompile(`(?m)^func ` + name + `\(`).MatchString(tests[d.pkg]) {
				t.Errorf("%s: %s has no %s", d.name, d.pkg, name)
			}
		}
	}
	require.LessOrEqual(t, len(names), 120)
}
