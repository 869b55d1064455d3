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
	beside := []string{"ping", "info", "time", "evalsha", "evalsha_ro", "script|load", "subscribe",
		"unsubscribe", "punsubscribe", "sunsubscribe", "discard"}
	used := slices.Clone(beside)
	call := regexp.MustCompile(`(?:redis\.p?call|try|failed)\('([A-Z]+)'`) // try is the trial's, failed is post's
	for _, s := range wire.NewSet(strings.Repeat("0", wire.RunIDLength)).Scripts() {
		calls := strings.Count(s.Text(), "redis.call(") + strings.Count(s.Text(), "redis.pcall(") +
			strings.Count(s.Text(), "try('") + strings.Count(s.Text(), "failed('") - strings.Count(s.Text(), "redis.pcall(...)")
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
