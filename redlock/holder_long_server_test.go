//go:build long

package redlock_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

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

// A payload of any bytes, as long as it may be, is read by another process, and lives and ends with
// its lease.
func TestPayloadOfAnyBytes(t *testing.T) {
	t.Parallel()
	var every strings.Builder
	for i := range redlock.MaxPayloadLength {
		every.WriteByte(byte(i)) // blanks, line ends, zero bytes, / ? %, what is not UTF-8
	}
	s := startServers(t, 3)
	q, other := s.open(redlock.WithTTL(longTTL), redlock.WithIdentity("a/b c?d")), s.open(redlock.WithTTL(longTTL), redlock.WithIdentity("other"))
	for i, payload := range []string{every.String(), "\x00", " \r\n", "/?%/?%", "\xff\xfe", strings.Repeat("\xff", redlock.MaxPayloadLength), "10.0.0.1:8080"} {
		key := "key " + strconv.Itoa(i)
		l := s.hold(q, key, redlock.WithPayload(payload))
		h, err := other.Holder(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, []any{"a/b c?d", payload}, []any{h.Identity, h.Payload})
		_, err = other.TryAcquire(t.Context(), key)
		var held *redlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, []any{"a/b c?d", payload}, []any{held.Holder.Identity, held.Holder.Payload})
		waits := s.wait(other, key, redlock.WithPayload("next"))
		s.do([]string{"DEL", lockKey(key)}, 0)
		require.NoError(t, l.Extend(t.Context()))
		require.Eventually(t, func() bool { return slices.Contains(s.locks(0), lockKey(key)) }, longTTL/2, pollTick, "it is not put back")
		h, err = other.Holder(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, payload, h.Payload)
		require.NoError(t, l.Release(t.Context()))
		next := receive(t, waits, longTTL, "the release called nobody")
		require.NoError(t, next.err)
		h, err = q.Holder(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, []any{"other", "next"}, []any{h.Identity, h.Payload})
		require.NoError(t, next.lease.Release(t.Context()))
	}
	s.requireFree(longTTL/2, "a release did not find its key")
}
