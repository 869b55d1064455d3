package scheduler_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

func TestLockerOptionsAreValidated(t *testing.T) {
	fleet := redlocktest.Start(t, 3)
	silent := redlock.WithLogger(slog.New(slog.DiscardHandler))
	quorum := func(opts ...redlock.Option) *redlock.Quorum {
		return open(t, fleet.URLs(), append(opts, silent, redlock.WithClientOption(fleet.ClientOption))...)
	}
	usual := quorum()
	short := quorum(redlock.WithTTL(2 * time.Second))
	slow := quorum(redlock.WithNodeTimeout(time.Second))

	for name, tc := range map[string]struct {
		q      *redlock.Quorum
		opts   []scheduler.LockerOption
		option string
		reason string
	}{
		"no quorum":             {nil, nil, "q", "is nil"},
		"nil option":            {usual, []scheduler.LockerOption{nil}, "LockerOption", "option 0 is nil"},
		"short TTL":             {usual, []scheduler.LockerOption{scheduler.WithTTL(999 * time.Millisecond)}, "WithTTL", "below the minimum of 1s"},
		"fraction of a ms":      {usual, []scheduler.LockerOption{scheduler.WithTTL(3*time.Second + 1)}, "WithTTL", "whole number of milliseconds"},
		"negative hold":         {usual, []scheduler.LockerOption{scheduler.WithMinHold(-1)}, "WithMinHold", "negative"},
		"hold above TTL":        {usual, []scheduler.LockerOption{scheduler.WithMinHold(5 * time.Second), scheduler.WithTTL(5 * time.Second)}, "WithMinHold", "5s is not below the TTL of 5s"},
		"default hold, own TTL": {short, nil, "WithMinHold", "2s is not below the TTL of 2s"},
		"quorum's node timeout": {slow, []scheduler.LockerOption{scheduler.WithTTL(3 * time.Second)}, "WithNodeTimeout", "more than a quarter of the TTL of 3s"},
		"hasty":                 {usual, []scheduler.LockerOption{scheduler.WithTryTimeout(9 * time.Millisecond)}, "WithTryTimeout", "below the minimum of 10ms"},
		"empty prefix":          {usual, []scheduler.LockerOption{scheduler.WithKeyPrefix("")}, "WithKeyPrefix", "1 to 512 bytes, not 0"},
		"long prefix":           {usual, []scheduler.LockerOption{scheduler.WithKeyPrefix(strings.Repeat("p", 513))}, "WithKeyPrefix", "1 to 512 bytes, not 513"},
		"brace":                 {usual, []scheduler.LockerOption{scheduler.WithKeyPrefix("}a")}, "WithKeyPrefix", "must not start with }"},
		"nil logger":            {usual, []scheduler.LockerOption{scheduler.WithLogger(nil)}, "WithLogger", "slog.DiscardHandler"},
		"nil lease option":      {usual, []scheduler.LockerOption{scheduler.WithLeaseOptions(redlock.WithoutAutoExtend(), nil)}, "WithLeaseOptions", "option 1 is nil"},
		"bad lease option":      {usual, []scheduler.LockerOption{scheduler.WithLeaseOptions(redlock.WithIdentity(""))}, "WithIdentity", "must be 1 to 256 bytes"},
		"not extended":          {usual, []scheduler.LockerOption{scheduler.WithLeaseOptions(redlock.WithoutAutoExtend())}, "redlock.WithoutAutoExtend", "not for jobs"},
		"a number":              {usual, []scheduler.LockerOption{scheduler.WithLeaseOptions(redlock.WithSequence(7, redlock.AtMostOnce, time.Hour))}, "WithLeaseOptions", "not for jobs"},
		"interval":              {usual, []scheduler.LockerOption{scheduler.WithLeaseOptions(redlock.WithExtendInterval(9 * time.Second))}, "WithExtendInterval", "no room for two attempts"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := scheduler.NewLocker(tc.q, tc.opts...)
			require.Nil(t, l)
			var invalid *scheduler.OptionError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, tc.option, invalid.Option)
			require.Contains(t, invalid.Reason, tc.reason)
			require.Equal(t, "scheduler: "+invalid.Option+": "+invalid.Reason, err.Error())
			require.Equal(t, "invalid", redlock.ErrorType(err))
		})
	}
}

func TestLockerOptionsApply(t *testing.T) {
	fleet := redlocktest.Start(t, 3)
	q := open(t, fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(7*time.Second))

	lease := mustLock(t, newLocker(t, q), "report").Lease()
	require.Equal(t, "job/report", lease.Key())
	require.Equal(t, 7*time.Second, lease.TTL(), "the Quorum's")

	lease = mustLock(t, newLocker(t, q,
		scheduler.WithTTL(3*time.Second),
		scheduler.WithKeyPrefix("billing/"),
		scheduler.WithLeaseOptions(redlock.WithIdentity("replica-a"), redlock.WithTTL(time.Minute)),
	), "report").Lease()
	require.Equal(t, "billing/report", lease.Key())
	require.Equal(t, 3*time.Second, lease.TTL())
	require.Equal(t, "replica-a", lease.Identity())
}
