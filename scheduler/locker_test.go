package scheduler_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Field: whoever waits in Lock gets it when the winner is done, and runs the tick again.
func TestTrap02LockDoesNotWaitForTheHolder(t *testing.T) {
	replicas := lockers(t, 2, scheduler.WithTryTimeout(10*time.Second))
	lock := mustLock(t, replicas[0], "report")

	start := time.Now()
	err := refused(t, replicas[1], "report")
	require.Less(t, time.Since(start), 5*time.Second, "one try, not the whole try timeout")
	require.ErrorIs(t, err, redlock.ErrHeld)
	require.Equal(t, "held", redlock.ErrorType(err))
	require.ErrorContains(t, err, `scheduler: job "report" is skipped: redlock: "job/report" is held`)
	var held *redlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, lock.Lease().Identity(), held.Holder.Identity)

	require.ErrorIs(t, refused(t, replicas[0], "report"), redlock.ErrHeld, "nor does the holder run it twice at a time")
	require.NoError(t, mustLock(t, replicas[1], "invoices").Unlock(t.Context()), "another job")
	require.NoError(t, lock.Unlock(t.Context()))
	require.NoError(t, mustLock(t, replicas[1], "report").Unlock(t.Context()))
}

// Field: a lock that is freed before the other replicas tick; three replicas ran five ticks fifteen
// times.
func TestTrap03InstantJob(t *testing.T) {
	const job = "instant"
	// runs has each replica tick a little after the one before has finished its run.
	runs := func(replicas []*scheduler.Locker) (n int) {
		for _, r := range replicas {
			lock, err := r.Lock(t.Context(), job)
			if err != nil {
				require.ErrorIs(t, err, redlock.ErrHeld)
				continue
			}
			n++
			require.NoError(t, lock.Unlock(t.Context()))
		}
		return n
	}
	t.Run("minimum hold", func(t *testing.T) {
		require.Equal(t, 1, runs(lockers(t, 3, scheduler.WithMinHold(scheduler.DefaultMinHold))))
	})
	t.Run("negative control", func(t *testing.T) {
		require.Equal(t, 3, runs(lockers(t, 3, scheduler.WithMinHold(0))))
	})
}

func TestMinHoldOnServers(t *testing.T) {
	const hold = 1200 * time.Millisecond
	q := open(t, valkeytest.Start(t, 3).URLs())
	lock := mustLock(t, newLocker(t, q, scheduler.WithMinHold(hold)), "report")
	require.NoError(t, lock.Unlock(t.Context()))

	holder, err := q.Holder(t.Context(), "job/report")
	require.NoError(t, err)
	require.Positive(t, holder.TTL)
	require.LessOrEqual(t, holder.TTL, hold, "the default TTL is 10 s")
	require.ErrorIs(t, lock.Lease().Err(), redlock.ErrReleased, "the run is over all the same")
	require.Eventually(t, func() bool {
		_, err := q.Holder(t.Context(), "job/report")
		return errors.Is(err, redlock.ErrNotHeld)
	}, 5*time.Second, 20*time.Millisecond, "well before the TTL")
}

// Field: gocron hands Unlock the job's context, which Shutdown has cancelled.
func TestUnlockWithACancelledContextFreesTheKey(t *testing.T) {
	q := open(t, valkeytest.Start(t, 3).URLs())
	lock := mustLock(t, newLocker(t, q), "report")
	_, err := q.Holder(t.Context(), "job/report")
	require.NoError(t, err)

	require.NoError(t, lock.Unlock(cancelled(t)))
	_, err = q.Holder(t.Context(), "job/report")
	require.ErrorIs(t, err, redlock.ErrNotHeld)
}

func TestUnlockTwice(t *testing.T) {
	replicas := lockers(t, 2)
	lock := mustLock(t, replicas[0], "report")
	require.NoError(t, lock.Unlock(t.Context()))
	next := mustLock(t, replicas[1], "report")
	require.Greater(t, next.Lease().FencingToken(), lock.Lease().FencingToken())
	require.NoError(t, lock.Unlock(t.Context()))
	require.NoError(t, next.Lease().Err(), "a second Unlock does not touch the next holder's lease")
	require.NoError(t, next.Unlock(t.Context()))
}

func TestLeaseIsExtendedWhileTheJobRuns(t *testing.T) {
	replicas := lockers(t, 2, scheduler.WithTTL(redlock.MinTTL))
	lock := mustLock(t, replicas[0], "report")
	first := lock.Lease().Deadline()
	require.Eventually(t, func() bool { return time.Now().After(first) }, patience, 10*time.Millisecond)
	require.NoError(t, lock.Lease().Err())
	require.ErrorIs(t, refused(t, replicas[1], "report"), redlock.ErrHeld)
	require.NoError(t, lock.Unlock(t.Context()))
}

func TestClosedQuorum(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	q := open(t, fleet.URLs())
	log := new(journal)
	l := newLocker(t, q, scheduler.WithLogger(log.logger()))
	lock := mustLock(t, l, "report")
	require.NoError(t, q.Close())

	require.ErrorIs(t, refused(t, l, "invoices"), redlock.ErrClosed)
	require.Len(t, log.lines(`level=WARN msg="scheduler: job is skipped" job=invoices error.type=closed`), 1)
	err := lock.Unlock(t.Context())
	require.ErrorIs(t, err, redlock.ErrClosed)
	require.ErrorIs(t, err, redlock.ErrLost)
	_, err = open(t, fleet.URLs()).Holder(t.Context(), "job/report")
	require.NoError(t, err, "the job may still be running: its key runs out by itself")
}

func TestLockerNotMadeByNewLocker(t *testing.T) {
	for _, l := range []*scheduler.Locker{nil, {}} {
		require.ErrorContains(t, refused(t, l, "report"), "scheduler: Locker: was not made by NewLocker")
	}
}

func TestJobNames(t *testing.T) {
	log := new(journal)
	l := lockers(t, 1, scheduler.WithLogger(log.logger()))[0]

	for name, reason := range map[string]string{
		"":                        "is empty",
		"caf\xe9":                 "is not UTF-8",
		strings.Repeat("n", 1021): "has 1021 bytes, more than 1020",
	} {
		err := refused(t, l, name)
		var invalid *scheduler.OptionError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "gocron.WithName", invalid.Option)
		require.Contains(t, invalid.Reason, reason)
	}
	require.NoError(t, mustLock(t, l, strings.Repeat("n", 1020)).Unlock(t.Context()))

	for name, warnings := range map[string]int{
		"main.main.func1":             1,
		"example.org/app.New.func2.1": 1,
		"example.org/app.glob..func3": 1,
		"example.org/app.(*T).Run-fm": 1,
		"example.org/app.poll[...]":   1,
		"example.org/app.poll":        0,
		"nightly-report":              0,
		"radio-fm":                    0,
		"fix.function2":               0,
	} {
		for range 2 {
			require.NoError(t, mustLock(t, l, name).Unlock(t.Context()))
		}
		require.Len(t, log.lines(`with gocron.WithName" job=`+name+"\n"), warnings, name)
	}
}
