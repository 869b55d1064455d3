package redlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
