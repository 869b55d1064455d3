//go:build long

package redlock_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// take acquires a key, or fails the test and returns nil.
func take(t *testing.T, q *redlock.Quorum, key string, opts ...redlock.LeaseOption) *redlock.Lease {
	t.Helper()
	lease, err := tryUntilAnswered(t, q, key, append(opts, redlock.WithoutAutoExtend())...)
	assert.NoError(t, err)
	return lease
}

// As many leases as one command extends and one command asks for have the longest payloads, each
// byte of which is three on the servers: no answer is too long for the client.
func TestPayloadsOfManyLeases(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q, other := s.open(redlock.WithTTL(longTTL)), s.open(redlock.WithTTL(longTTL))
	payload := strings.Repeat("\xff", redlock.MaxPayloadLength)
	const many = 200
	leases := make([]*redlock.Lease, many)
	errs := make([]error, many)
	each := func(f func(i int) error) {
		var all sync.WaitGroup
		for i := range leases {
			all.Go(func() { errs[i] = f(i) })
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
	}
	each(func(i int) (err error) {
		leases[i], err = q.Acquire(t.Context(), "key "+strconv.Itoa(i), redlock.WithPayload(payload))
		return err
	})
	each(func(i int) error {
		_, err := other.TryAcquire(t.Context(), "key "+strconv.Itoa(i))
		var held *redlock.HeldError
		if !errors.As(err, &held) || held.Holder.Payload != payload {
			return fmt.Errorf("%d: %w", i, err)
		}
		return nil
	})
	granted := time.Now()
	for _, l := range leases {
		require.Eventually(t, func() bool { return l.Deadline().After(granted.Add(longTTL)) }, patience, pollTick, "it is not extended")
		require.NoError(t, l.Err())
	}
	each(func(i int) error { return leases[i].Release(t.Context()) })
	s.requireFree(longTTL, "a release did not find its key")
}
