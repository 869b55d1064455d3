//go:build long

package redlock_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/redlock"
)

// Whatever bytes are in the keys of a lease on one node, a quorum of others does not notice, and no
// error is one of a script; on that node alone each operation works or says what is wrong.
func TestForeignBytes(t *testing.T) {
	s := startServers(t, 3)
	full := s.open(redlock.WithTTL(longTTL), redlock.WithPrefix("three")) // of other nodes
	alone := openURLs(t, []string{s.Node(0).URL()}, redlock.WithTTL(longTTL))
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		for i, q := range []*redlock.Quorum{full, alone} {
			key := fmt.Sprint("key", run, "-", i)
			foul := func() {
				for kind, name := range foreignKeys(key) {
					if q == full {
						name = ofThree(name)
					}
					s.foul(rt, kind, name)
				}
			}
			foul()
			_, err := q.Holder(t.Context(), key)
			requireNoLua(rt, err)
			l, err := q.TryAcquire(t.Context(), key)
			requireNoLua(rt, err)
			if q == full {
				require.True(rt, err == nil || errors.Is(err, redlock.ErrTimeout), "%v", err)
			}
			if l == nil {
				continue
			}
			if rapid.Bool().Draw(rt, "while it is held") {
				foul()
			}
			err = l.Extend(t.Context())
			requireNoLua(rt, err)
			if q == full && err != nil {
				require.ErrorIs(rt, err, redlock.ErrTimeout)
			}
			_, err = q.Holder(t.Context(), key)
			requireNoLua(rt, err)
			requireNoLua(rt, l.Release(t.Context()))
		}
	})
}
