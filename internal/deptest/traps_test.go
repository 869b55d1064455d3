package deptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each trap of docs/testing.md has a test by its number, those of gocron in package scheduler,
// and each TestTrap has a trap.
func TestTrapsAreOnTheirPage(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "testing.md"))
	require.NoError(t, err)
	_, traps, ok := strings.Cut(string(text), "\n## Traps\n")
	require.True(t, ok)
	locks, jobs, ok := strings.Cut(traps, "\n### gocron")
	require.True(t, ok)

	number := regexp.MustCompile(`\d\d`)
	listed := func(text string) (numbers []string) {
		for _, item := range regexp.MustCompile(`(?m)^\* \*\*([\d, ]+)\*\* `).FindAllStringSubmatch(text, -1) {
			numbers = append(numbers, number.FindAllString(item[1], -1)...)
		}
		slices.Sort(numbers)
		return numbers
	}
	function := regexp.MustCompile(`(?m)^func TestTrap(\d\d(?:And\d\d)*)`)
	defined := make(map[bool][]string) // by whether they are of package scheduler
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		ofJobs := filepath.Base(filepath.Dir(path)) == "scheduler"
		for _, match := range function.FindAllSubmatch(text, -1) {
			defined[ofJobs] = append(defined[ofJobs], number.FindAllString(string(match[1]), -1)...)
		}
		return err
	}))
	for ofJobs, text := range map[bool]string{false: locks, true: jobs} {
		slices.Sort(defined[ofJobs])
		require.Equal(t, slices.Compact(defined[ofJobs]), listed(text))
	}
}
