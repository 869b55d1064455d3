package deptest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/health"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A test that a document names is there. TestTrap, also with a number, means all of them. Those of
// the track record were there at its commits, see TestTrackRecord.
func TestDocumentsNameTests(t *testing.T) {
	declared, named := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`), regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	there := make(map[string]bool)
	inTree(t, func(name string, text func() string) {
		if strings.HasSuffix(name, "_test.go") {
			for _, match := range declared.FindAllStringSubmatch(text(), -1) {
				there[match[1]] = true
			}
		}
	})
	found := 0
	inTree(t, func(name string, text func() string) {
		if path.Ext(name) != ".md" || name == "docs/track-record.md" {
			return
		}
		for _, test := range named.FindAllString(text(), -1) {
			found++
			if !there[test] && strings.Trim(test, "0123456789") != "TestTrap" {
				t.Errorf("%s: there is no %s", name, test)
			}
		}
	})
	require.Greater(t, found, 10)
}

// A file of tests has a tag if and only if its name says so: make test leaves those out that are
// long, and make test-all those that are nightly.
func TestNamesOfFilesTellTheirTags(t *testing.T) {
	found := make(map[string]int)
	inTree(t, func(name string, text func() string) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, tag := range []string{"long", "nightly"} {
			named := strings.Contains(path.Base(name), "_"+tag+"_")
			require.Equal(t, named, strings.HasPrefix(text(), "//go:build "+tag+"\n"), name)
			if named {
				found[tag]++
			}
		}
	})
	require.Len(t, found, 2)
}

var snippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// flat are the lines without indentation, and without empty ones.
func flat(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// Go on a page is code of the repository, which is compiled: line by line, at any depth.
func TestSnippetsAreCompiled(t *testing.T) {
	var sources []string
	pages := make(map[string]string)
	inTree(t, func(name string, text func() string) {
		switch {
		case path.Ext(name) == ".go":
			sources = append(sources, flat(text()))
		case path.Ext(name) == ".md" && (path.Dir(name) == "docs" || name == "README.md"):
			pages[name] = text()
		}
	})
	shown := 0
	for page, text := range pages {
		found := snippet.FindAllStringSubmatch(text, -1)
		shown += len(found)
		for _, s := range found {
			code := flat(s[1])
			require.True(t, slices.ContainsFunc(sources, func(source string) bool { return strings.Contains(source, code) }),
				"%s: no Go file of the repository has this; shown_test.go is for that:\n%s", page, s[1])
		}
	}
	require.Greater(t, shown, 20)
}

// Each trap of docs/testing.md has a test by its number, those of gocron in package scheduler,
// and each TestTrap has a trap.
func TestTrapsAreOnTheirPage(t *testing.T) {
	_, traps, ok := strings.Cut(readTop(t, "docs/testing.md"), "\n## Traps\n")
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
	inTree(t, func(name string, text func() string) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		ofJobs := path.Dir(name) == "scheduler"
		for _, match := range function.FindAllStringSubmatch(text(), -1) {
			defined[ofJobs] = append(defined[ofJobs], number.FindAllString(match[1], -1)...)
		}
	})
	for ofJobs, text := range map[bool]string{false: locks, true: jobs} {
		slices.Sort(defined[ofJobs])
		require.Equal(t, slices.Compact(defined[ofJobs]), listed(text))
	}
}

// The packages that a program may import are in the table of docs/start.md, and docs/reference.md
// promises something of each; it names the other modules, too.
func TestPublicPackagesAreOnTheirPages(t *testing.T) {
	page := readTop(t, "docs/reference.md")
	names := regexp.MustCompile("`([a-z/0-9]+)`")
	listed := func(text string) (found []string) {
		for _, match := range names.FindAllStringSubmatch(text, -1) {
			found = append(found, match[1])
		}
		slices.Sort(found)
		return found
	}
	_, api, ok := strings.Cut(page, "The API is the exported identifiers of ")
	require.True(t, ok)
	api, _, _ = strings.Cut(api, ", and the behaviour")
	_, modules, ok := strings.Cut(page, "and the modules ")
	require.True(t, ok)
	modules, _, _ = strings.Cut(modules, ";")

	var public, others, table []string
	require.NoError(t, filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || file == top {
			return err
		}
		if name := entry.Name(); strings.HasPrefix(name, ".") || name == "internal" || name == "testdata" {
			return filepath.SkipDir
		}
		name, err := filepath.Rel(top, file)
		if _, is := os.Stat(filepath.Join(file, "go.mod")); is == nil {
			others = append(others, filepath.ToSlash(name))
			return filepath.SkipDir
		}
		if sources, _ := filepath.Glob(filepath.Join(file, "*.go")); len(sources) > 0 {
			public = append(public, filepath.ToSlash(name))
		}
		return err
	}))
	for _, match := range regexp.MustCompile("(?m)^\\| \\[`([a-z/]+)`\\]\\(\\.\\./([a-z/]+)\\) \\|").FindAllStringSubmatch(readTop(t, "docs/start.md"), -1) {
		require.Equal(t, match[1], match[2])
		table = append(table, match[1])
	}
	slices.Sort(table)
	require.Equal(t, public, table, "docs/start.md")
	require.Equal(t, public, listed(api), "docs/reference.md")
	require.Equal(t, others, listed(modules), "docs/reference.md")
}

// Each option and each error that a program can name is in docs/reference.md, and none that is not
// there any more.
func TestReferenceHasAllOptionsAndErrors(t *testing.T) {
	tables, _, ok := strings.Cut(readTop(t, "docs/reference.md"), "\n## On the wire\n")
	require.True(t, ok)
	listed := make(map[string]bool)
	for _, match := range regexp.MustCompile("`(?:[a-z]+\\.)?(With\\w+|Err[A-Z]\\w+|[A-Z]\\w+Error)`").FindAllStringSubmatch(tables, -1) {
		listed[match[1]] = true
	}
	defined := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^(?:func (With\w+)\(|(?:var |\t)(Err[A-Z]\w+) +(?:error )?= |type ([A-Z]\w+Error) )`)
	inTree(t, func(name string, text func() string) {
		public := slices.Contains([]string{"redlock", "elector", "scheduler", "admin", "health", "web", "otel"}, path.Dir(name))
		if public && path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			for _, match := range declared.FindAllStringSubmatch(text(), -1) {
				defined[match[1]+match[2]+match[3]] = true
			}
		}
	})
	require.Equal(t, defined, listed)
}

// Defaults and bounds on the page are those of the code.
func TestReferenceHasTheNumbersOfOptions(t *testing.T) {
	page := readTop(t, "docs/reference.md")
	for row, numbers := range map[string][]any{
		"| `WithTTL` L":            {redlock.DefaultTTL, redlock.MinTTL},
		"| `WithIdentity` L":       {redlock.MaxIdentityLength},
		"| `WithPrefix`":           {"`" + redlock.DefaultPrefix + "`"},
		"| `WithClockSkew`":        {redlock.DefaultClockSkew},
		"| `WithDrift`":            {redlock.DefaultDrift},
		"| `WithBackoff`":          {elector.DefaultBackoffMin, elector.MaxPause},
		"| `WithDrainTimeout`":     {elector.MaxPause},
		"| `WithStopTimeout`":      {scheduler.DefaultStopTimeout, scheduler.MaxTimeout},
		"| `WithMinHold` | Locker": {scheduler.DefaultMinHold},
		"| `WithTryTimeout`":       {scheduler.DefaultTryTimeout, scheduler.MinTryTimeout, scheduler.MaxTimeout},
		"| `WithCatchUp`":          {scheduler.Grace},
		"| `WithRetry`":            {scheduler.MaxRetries},
		"| | `WithOrderTimeout`":   {admin.DefaultOrderTimeout},
		"| `admin` | `WithActor`":  {admin.MaxText},
		"| | `WithLeaseNames`":     {tenureotel.MaxLeaseNames},
		"**The others.**":          {health.Timeout},
	} {
		_, line, found := strings.Cut(page, "\n"+row)
		require.True(t, found, row)
		line, _, _ = strings.Cut(line, "\n|")
		for _, number := range numbers {
			text := fmt.Sprint(number)
			if d, ok := number.(time.Duration); ok {
				text = strings.NewReplacer("h0m0s", " h", "ms", " ms", "s", " s").Replace(d.String())
			}
			require.Contains(t, line, text, row)
		}
	}
}

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
	faults, odd := faultsOf(readTop(t, "docs/track-record.md"))
	require.Empty(t, odd)
	require.GreaterOrEqual(t, len(faults), 12)

	read, err := exec.Command(filepath.Join(top, "scripts", "track-record.sh")).Output()
	require.NoError(t, err)
	var listed strings.Builder
	for _, f := range faults {
		listed.WriteString(strings.Join(append([]string{f.number, f.commit, f.pkg, f.test}, f.files...), " ") + "\n")
	}
	require.Equal(t, listed.String(), string(read))

	git := func(args ...string) ([]byte, error) {
		return exec.Command("git", append([]string{"-C", top}, args...)...).Output()
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
