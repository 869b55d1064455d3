package deptest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each option and each error that a program can name is in docs/reference.md, and none that is not
// there any more.
func TestReferenceHasAllOptionsAndErrors(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference.md"))
	require.NoError(t, err)
	tables, _, ok := strings.Cut(string(page), "\n## On the wire\n")
	require.True(t, ok)
	listed := make(map[string]bool)
	for _, match := range regexp.MustCompile("`(?:[a-z]+\\.)?(With\\w+|Err[A-Z]\\w+|[A-Z]\\w+Error)`").FindAllStringSubmatch(tables, -1) {
		listed[match[1]] = true
	}
	defined := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^(?:func (With\w+)\(|(?:var |\t)(Err[A-Z]\w+) +(?:error )?= |type ([A-Z]\w+Error) )`)
	for _, name := range []string{"redlock", "elector", "scheduler", "admin", "health", "web", "otel"} {
		files, err := filepath.Glob(filepath.Join(root, name, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
				defined[match[1]+match[2]+match[3]] = true
			}
		}
	}
	require.Equal(t, defined, listed)
}
