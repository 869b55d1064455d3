package redlock

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// The rights that a user is advised to have are the commands of the scripts and those that are sent
// beside them.
func TestRightsAreWhatIsUsed(t *testing.T) {
	beside := []string{"ping", "info", "time", "eval", "eval_ro", "evalsha", "evalsha_ro", "subscribe",
		"unsubscribe", "punsubscribe", "sunsubscribe", "discard"}
	used := slices.Clone(beside)
	call := regexp.MustCompile(`(?:redis\.p?call|write|try|may)\('([A-Z_]+)'`) // try and may are the trial's
	for _, s := range wire.Scripts() {
		calls := strings.Count(s.Text(), "redis.call(") + strings.Count(s.Text(), "redis.pcall(") +
			strings.Count(s.Text(), "try('") + strings.Count(s.Text(), "write('") + strings.Count(s.Text(), "may('") - strings.Count(s.Text(), "redis.pcall(...)")
		require.Len(t, call.FindAllString(s.Text(), -1), calls, "a command that this test does not see: %s", s.Text())
		for _, found := range call.FindAllStringSubmatch(s.Text(), -1) {
			used = append(used, strings.ToLower(found[1]))
		}
	}
	slices.Sort(used)
	granted := strings.Fields(strings.ReplaceAll(Rights, "+", ""))
	slices.Sort(granted)
	require.Equal(t, slices.Compact(used), granted)
}

// A right that is missing shows at the next look: the trial tries each of them, but for what
// carries the trial itself, and what the look asks beside it.
func TestTrialTriesAllRights(t *testing.T) {
	tried := []string{"evalsha", "info"}
	for _, trial := range wire.Trials {
		tried = append(tried, strings.ToLower(trial.Command))
	}
	slices.Sort(tried)
	granted := strings.Fields(strings.ReplaceAll(Rights, "+", ""))
	slices.Sort(granted)
	require.Equal(t, granted, slices.Compact(tried))
}
