package redlock

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// What servers say, word for word: Redis 7.0.15 and 8.0.2, Valkey 8.0.1 and 8.1.1, where they
// differ. TestWordsOfThisServer asks the one that the tests run on.
func TestWordsOfServers(t *testing.T) {
	for text, want := range map[string]Condition{
		// Redis 7.0.
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                        ConditionNoPermission,
		"NOPERM this user has no permissions to run the 'eval' command":                                                           ConditionNoPermission,
		"NOPERM this user has no permissions to access one of the keys used as arguments":                                         ConditionNoPermission,
		"NOPERM this user has no permissions to access one of the channels used as arguments":                                     ConditionNoPermission,
		"The user executing the script can't run this command or subcommand script: 71923a30, on @user_script:1.":                 ConditionNoPermission,
		"The user executing the script can't access at least one of the keys mentioned in the command arguments script: 2c, on @": ConditionNoPermission,
		"The user executing the script can't access at least one of the keys mentioned in the command arguments":                  ConditionNoPermission,
		"The user executing the script can't publish to the channel mentioned in the command script: 50f4f0f7, on @user_script:1": ConditionNoPermission,
		// Redis 7.2 and later, Valkey.
		"NOPERM User u has no permissions to run the 'evalsha' command":                                                  ConditionNoPermission,
		"NOPERM No permissions to access a key":                                                                          ConditionNoPermission,
		"NOPERM No permissions to access a channel":                                                                      ConditionNoPermission,
		"ACL failure in script: User u has no permissions to run the 'del' command script: 71923a30, on @user_script:1.": ConditionNoPermission,
		"ACL failure in script: No permissions to access a key script: 2c72deee, on @user_script:1.":                     ConditionNoPermission,
		"ACL failure in script: No permissions to access a channel":                                                      ConditionNoPermission,
		"OOM command not allowed when used memory > 'maxmemory'. script: 71923a30, on @user_script:1.":                   ConditionOutOfMemory,
		"OOM command not allowed when used memory > 'maxmemory'.":                                                        ConditionOutOfMemory,
		"NOAUTH Authentication required.":                                                                                ConditionNoAuth,
		"WRONGPASS invalid username-password pair or user is disabled.":                                                  ConditionNoAuth,
		"max number of clients reached":                                                                                  Condition(wire.TooManyUsers),
		"READONLY You can't write against a read only replica.":                                                          Condition(wire.ReadOnly),
		"READONLY You can't write against a read only replica. script: 71923a30, on @user_script:1.":                     Condition(wire.ReadOnly),
		"LOADING Redis is loading the dataset in memory":                                                                 Condition(wire.Loading),
		"LOADING Valkey is loading the dataset in memory":                                                                Condition(wire.Loading),
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":                         Condition(wire.Busy),
		"BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":                        Condition(wire.Busy),
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                               Condition(wire.Masterless),
		"NOREPLICAS Not enough good replicas to write.":                                                                  Condition(wire.FewReplicas),
		"MISCONF Errors writing to the AOF file: No space left on device":                                                Condition(wire.NotSaving),
		"DENIED Redis is running in protected mode because protected mode is enabled and no password is set":             Condition(wire.Protected),
		"NOSCRIPT No matching script. Please use EVAL.":                                                                  ConditionRestarted,
		"unknown command 'EVALSHA', with args beginning with: 'x'":                                                       Condition(wire.NoCommand),
		"Unknown Redis command called from script script: 71923a30, on @user_script:1.":                                  Condition(wire.NoCommand),
		"wrong number of arguments for 'evalsha' command":                                                                "",
	} {
		condition, found := wire.ConditionOf(text)
		require.Equal(t, want, Condition(condition), text)
		require.Equal(t, want != "", found, text)
	}
}

// A time has its date where that is not today's, so that nobody waits until a time that has passed.
func TestMomentHasItsDateUnlessItIsToday(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 3, 4, 22, 30, 0, 0, zone)
	require.Equal(t, "23:59:59", moment(now.Add(time.Hour+29*time.Minute+59*time.Second), now))
	require.Equal(t, "2026-03-05 07:34:00", moment(time.Date(2026, 3, 5, 7, 34, 0, 0, zone), now))
	require.Equal(t, "2026-03-03 22:30:00", moment(now.AddDate(0, 0, -1), now))
	require.Equal(t, "21:00:00", moment(now.Add(30*time.Minute).In(time.UTC), now), "the same day there")

	long := &ConditionError{Condition: ConditionQuarantined, Until: time.Now().Add(25 * time.Hour)}
	require.Contains(t, long.Error(), " until "+long.Until.Format(time.DateTime))
}

// What a program may ask for has the same name and value as what servers are found to be, and of
// each condition is said what to do.
func TestConditionsHaveTheSameNames(t *testing.T) {
	conditions := func(file, name string) map[string]string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all := make(map[string]string)
		for _, found := range regexp.MustCompile(`(?m)^\t`+name+`(\w+) +Condition = "(\w+)"`).FindAllStringSubmatch(string(text), -1) {
			all[found[1]] = found[2]
		}
		return all
	}
	servers, users := conditions("internal/wire/fault.go", ""), conditions("condition.go", "Condition")
	require.NotEmpty(t, users)
	require.Subset(t, servers, users)
	require.Len(t, slices.Compact(slices.Sorted(maps.Values(servers))), len(servers))
	for name, value := range servers {
		require.NotEmpty(t, advice[wire.Condition(value)], name)
		e := testQuorum(1).conditionError(&wire.Fault{Condition: wire.Condition(value), Detail: "seen"})
		require.Equal(t, value, ErrorType(e))
		require.Contains(t, e.Error(), advice[wire.Condition(value)])
	}
	require.Len(t, advice, len(servers))
}

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

// Whatever a server answers instead of INFO, its warning has the type that is promised.
func TestWarningsAreConditions(t *testing.T) {
	n := testQuorum(1).nodes[0]
	for kind, err := range map[Condition]error{Condition(wire.BadReply): fmt.Errorf("%w: 7", wire.ErrUnexpected), Condition(wire.Busy): &wire.Fault{Condition: wire.Busy}} {
		var s NodeStatus
		s.fill(n, &vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: err}, 0, nil)
		require.True(t, s.Reachable)
		require.Len(t, s.Warnings, 1)
		require.IsType(t, &ConditionError{}, s.Warnings[0])
		require.Equal(t, kind == Condition(wire.Busy), s.Warnings[0].(*ConditionError).Condition == Condition(wire.Busy))
	}
}

// A node that answers INFO, and not what a lease needs, does not vote, and says that.
func TestNodeThatAnswersNoTrial(t *testing.T) {
	q := testQuorum(1)
	n := q.nodes[0]
	tried := q.ask(n, wire.Trial, 1)
	require.True(t, tried.unanswered(t.Context(), 0))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, tried.unanswered(ended, 0), "nobody waited")
	q.fake(0).answer(0, wire.Answer{Verdict: wire.Failed}, node.ErrTimeout)
	require.True(t, tried.unanswered(t.Context(), 0))
	tried = q.ask(n, wire.Trial, 1)
	q.fake(0).answer(1, wire.Answer{Verdict: wire.OK}, nil)
	require.False(t, tried.unanswered(t.Context(), 0))

	s := NodeStatus{Node: n.addr, Reachable: true}
	s.judge(n, false)
	require.True(t, s.Votes)
	require.NoError(t, s.Err)
	s.judge(n, true)
	require.False(t, s.Votes)
	require.ErrorIs(t, s.Err, ErrTimeout)
	require.ErrorContains(t, s.Err, "CLIENT UNPAUSE")
}

// A server is what it says it is: Valkey keeps redis_version at what it was like when it left.
func TestNamesOfServers(t *testing.T) {
	for text, name := range map[string]string{
		"":                     "",
		"redis_version:7.0.15": "redis 7.0.15",
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1": "valkey 8.0.1",
	} {
		info, err := wire.ParseInfo(text + "\r\nrun_id:" + strings.Repeat("0", wire.RunIDLength) + "\r\nuptime_in_seconds:5\r\nserver_time_usec:1795748159874704\r\nrole:master\r\n")
		require.NoError(t, err)
		require.Equal(t, name, info.Name)
	}
}
