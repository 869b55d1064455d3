package deptest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// Defaults and bounds on the page are those of the code.
func TestReferenceHasTheNumbersOfOptions(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference.md")
	require.NoError(t, err)
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
		_, line, found := strings.Cut(string(page), "\n"+row)
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
