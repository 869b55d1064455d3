package wire

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

const (
	someOwner = "host one/AAAAAAAAAAAAAAAAAAAAAA"
)

// No server raises its counter to a token that is damaged, or beyond one of its own that is.
func TestAgreementIsNotLed(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	micros := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).UnixMicro(), 10) }
	for i, test := range []struct{ has, fence, token, want string }{
		{"5", "5", "6", "1"}, {"6", "6", "6", "0"}, {"7", "7", "6", "0"}, {"5", "5", micros(49 * time.Hour), "1"},
		{"5", "6", "6", "1"}, {"5", "9", "6", "1"}, {"6", "5", "6", "0"}, // the counter was raised for another key, or lost
		{"5", "5", "9007199254740992", "TENUREDAMAGED"}, {"5", "5", "18446744073709551615", "TENUREDAMAGED"},
		{"5", "x", "6", "TENUREDAMAGED"}, {"5", "9007199254740992", "6", "TENUREDAMAGED"}, {"9007199254740992", "5", "6", "0"},
	} {
		k := &Keys{Lock: fmt.Sprintf("{%d}", i), Fences: fmt.Sprintf("{%d}:fence", i), Slot: "7"}
		require.NoError(t, n.Do(t, "SET", k.Lock, Lock(test.has, someOwner), "PX", "60000").Error())
		require.NoError(t, n.Do(t, "HSET", k.Fences, k.Slot, test.fence).Error())
		token, err := strconv.ParseUint(test.token, 10, 64)
		require.NoError(t, err)
		agree := &Call{Op: Agree, Keys: k, Lock: Lock(test.token, someOwner), Token: token}
		agreed := ask(t, n.Client(), vouched, agree)[0]
		text := map[Verdict]string{OK: "1", Refused: "0"}[agreed.Verdict]
		if agreed.Err != nil {
			text = agreed.Err.Error()
		}
		require.Contains(t, text, test.want, "%+v", test)
		lock, err := n.Do(t, "GET", k.Lock).ToString()
		require.NoError(t, err)
		fence, err := n.Do(t, "HGET", k.Fences, k.Slot).ToString()
		require.NoError(t, err)
		if test.want == "1" {
			test.has = test.token
			if len(test.fence) < len(test.token) || test.fence < test.token {
				test.fence = test.token
			}
		}
		require.Equal(t, test.fence, fence, "%+v", test)
		require.Equal(t, Lock(test.has, someOwner), lock, "%+v", test)
		left, err := n.Do(t, "PTTL", k.Lock).AsInt64()
		require.NoError(t, err)
		require.Positive(t, left, "agreement does not prolong it")
		require.LessOrEqual(t, left, int64(60_000))
	}
}
