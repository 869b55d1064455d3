package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// What a script returns counts with the number of its command, in front of a text or behind
// anything else in a list, and not without it or with another one.
func TestAnswerCountsForItsCommand(t *testing.T) {
	n := valkeytest.Start(t, 1).Node(0)
	release := []*Call{{Op: Release, Keys: &Keys{Lock: "key"}}}
	for lua, want := range map[string]error{
		"return '5 1'":        nil,
		"return {1, '5'}":     nil,
		"return {'1', '5'}":   nil,
		"return '6 1'":        ErrOutOfStep,
		"return '51 1'":       ErrOutOfStep,
		"return '1 5'":        ErrOutOfStep,
		"return {1, '6'}":     ErrOutOfStep,
		"return {'5', 1}":     ErrOutOfStep,
		"return {1, '5', 5}":  ErrOutOfStep,
		"return {1}":          ErrOutOfStep,
		"return {}":           ErrOutOfStep,
		"return 5":            ErrOutOfStep,
		"return ''":           ErrOutOfStep,
		"return '5'":          ErrUnexpected,
		"return '5 '":         ErrUnexpected,
		"return '5 one'":      ErrUnexpected,
		"return {'one', '5'}": ErrUnexpected,
	} {
		r := Decode(release, n.Do(t, "EVAL", lua, "0"), "5", nil)[0]
		require.ErrorIs(t, r.Err, want, lua)
		if want == nil {
			require.Equal(t, OK, r.Verdict, lua)
		}
	}
	r := Decode(release, n.Do(t, "EVAL", "return {redis.error_reply('TENUREDAMAGED x'), '5'}", "0"), "5", nil)[0]
	require.ErrorContains(t, r.Err, "TENUREDAMAGED")
}
