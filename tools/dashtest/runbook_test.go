package dashtest

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rule is an alert, or what is recorded.
type rule struct {
	Record, Alert, Expr string
	For                 model.Duration
	Labels, Annotations map[string]string
}

// rules are all of them, by their names.
func rules(t *testing.T) map[string]rule {
	t.Helper()
	all := make(map[string]rule)
	names, err := filepath.Glob(filepath.Join(files, "prometheus/rules/*.yml"))
	require.NoError(t, err)
	for _, name := range names {
		var file struct{ Groups []struct{ Rules []rule } }
		readYAML(t, filepath.Join("prometheus/rules", filepath.Base(name)), &file)
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				all[r.Alert+r.Record] = r
			}
		}
	}
	return all
}

var (
	numeral = regexp.MustCompile(`\d+(?:\.\d+)?[smhd]?`)
	unsaid  = regexp.MustCompile(`\d+ \* \d+|quantile\([\d.]+`)
	passed  = regexp.MustCompile(`(?m)time\(\) - (\d+)$`)
	worded  = regexp.MustCompile(`\b(?:(a|two|three|four|five|\d+) (?:([mhd])(?:inute|our|ay)s?|ticks)\b|(half an hour|half|tenth|third|15 s)\b|(\d+) (?:times|in) )`)
	figures = map[string]string{"a": "1", "two": "2", "three": "3", "four": "4", "five": "5", "half an hour": "30m", "half": "0.5", "tenth": "10", "third": "3", "15 s": "15"}
	means   = regexp.MustCompile(`(?m)^### (Tenure\w+)\n\n\*\*Means\.\*\* ((?:.+\n)*)`)
	fits    = regexp.MustCompile(`\*\*([^*]+)\*\* (?:in|of) ([^.]+?):\s`)
)

// numbers are those of a rule, and of what it asks for. What waits after a time has one of both.
func (r rule) numbers(all map[string]rule) map[string]bool {
	found, expr := map[string]bool{r.For.String(): true}, r.Expr
	if after := passed.FindStringSubmatch(expr); after != nil {
		seconds, _ := model.ParseDuration(after[1] + "s")
		found, expr = map[string]bool{(r.For + seconds).String(): true}, strings.Replace(expr, after[0], "", 1)
	}
	for name, other := range all {
		if other.Record != "" && strings.Contains(r.Expr, name) {
			expr += "\n" + other.Expr
		}
	}
	for _, n := range numeral.FindAllString(unsaid.ReplaceAllString(expr, ""), -1) {
		found[n] = true
		if whole, err := strconv.Atoi(n); err == nil {
			found[model.Duration(time.Duration(whole)*time.Second).String()] = true
		}
	}
	return found
}

// Names, severities and numbers on the page for people on call are those of the rules.
func TestRunbookHasTheNumbersOfTheRules(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	require.NoError(t, err)
	all, found, alerts := rules(t), 0, 0
	requireSaid := func(text, name string, lasts bool) {
		for i, said := range worded.FindAllStringSubmatch(strings.ToLower(strings.Join(strings.Fields(text), " ")), -1) {
			number := cmp.Or(figures[said[1]+said[3]], said[1]) + said[2]
			if n, err := strconv.Atoi(said[4]); err == nil { // an increase is estimated: half of one is none
				number = strconv.Itoa(n-1) + ".5"
			}
			found++
			assert.Contains(t, all[name].numbers(all), number, "%s: %s", name, said[0])
			assert.True(t, !lasts || i > 0 || number == all[name].For.String(), "%s lasts %v", name, all[name].For)
		}
	}
	for _, m := range means.FindAllStringSubmatch(string(page), -1) {
		name, text, anchor := m[1], m[2], "#"+strings.ToLower(m[1])
		alerts++
		assert.Equal(t, all[name].Labels["severity"] == "critical", strings.Contains(text, "*Critical.*"), name)
		assert.True(t, strings.HasSuffix(all[name].Annotations["runbook_url"], "/docs/operations.md"+anchor), name)
		assert.Contains(t, string(page), "["+name+"]("+anchor+")", "the contents")
		requireSaid(text+regexp.MustCompile(name+` fires (.*)`).FindString(string(page)), name, strings.HasPrefix(text, "For "))
	}
	_, fitting, _ := strings.Cut(string(page), "\n## Fitting the rules\n")
	for name, r := range all {
		if r.Alert != "" {
			alerts--
		}
		for _, f := range fits.FindAllStringSubmatch(fitting, -1) {
			if strings.Contains(f[2], name) || strings.HasSuffix(name, strings.Trim(f[2], "`")) {
				requireSaid(f[1], name, strings.HasSuffix(f[1], "minutes"))
			}
		}
	}
	require.Zero(t, alerts, "each has a section")
	require.Equal(t, 31, found, "numbers that the rules have")
}
