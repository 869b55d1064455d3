package deptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A row of docs/track-record.md: a fault, and the test that shows it.
type fault struct {
	number, commit, pkg, test string
	files                     []string
}

var faultRow = regexp.MustCompile("^\\| ([0-9]+) \\| [^|]+ \\| [^|]+ \\| `([0-9a-f]{9})` \\| `([a-z/]+)` \\| `(Test\\w+)` \\| `(\\w+_test\\.go(?: \\w+_test\\.go)*)` \\|$")

// faultsOf are the rows of a table, and what is no row of one.
func faultsOf(text string) (faults []fault, odd []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		row := faultRow.FindStringSubmatch(line)
		switch {
		case row != nil && row[1] == strconv.Itoa(len(faults)+1):
			faults = append(faults, fault{row[1], row[2], row[3], row[4], strings.Fields(row[5])})
		case strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "| N |") && strings.Trim(line, "|- ") != "":
			odd = append(odd, line)
		}
	}
	return faults, odd
}

// Each row of the track record is what its script reads, and its test is in one of its files at
// its commit, where the clone has that.
func TestTrackRecord(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "track-record.md"))
	require.NoError(t, err)
	faults, odd := faultsOf(string(text))
	require.Empty(t, odd)
	require.GreaterOrEqual(t, len(faults), 12)

	read, err := exec.Command(filepath.Join(root, "scripts", "track-record.sh")).Output()
	require.NoError(t, err)
	var listed strings.Builder
	for _, f := range faults {
		listed.WriteString(strings.Join(append([]string{f.number, f.commit, f.pkg, f.test}, f.files...), " ") + "\n")
	}
	require.Equal(t, listed.String(), string(read))

	git := func(args ...string) ([]byte, error) {
		return exec.Command("git", append([]string{"-C", root}, args...)...).Output()
	}
	for _, f := range faults {
		if _, err := git("cat-file", "-e", f.commit); err != nil {
			continue // a shallow clone
		}
		var sources strings.Builder
		for _, name := range f.files {
			source, err := git("show", f.commit+":"+f.pkg+"/"+name)
			require.NoError(t, err, "row %s: %s has no %s/%s", f.number, f.commit, f.pkg, name)
			sources.Write(source)
		}
		require.True(t, strings.Contains(sources.String(), "\nfunc "+f.test+"("), "row %s: its test is in none of its files", f.number)
	}
}
