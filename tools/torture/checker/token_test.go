package checker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/checker"
)

func TestTokenOutOfOrderIsFound(t *testing.T) {
	s := newScript(t)
	s.grant(0, 20, 1000).release(1100)
	s.grant(1, 30, 1200).release(1300)
	s.grant(2, 25, 1400).release(1500)
	v := s.check(checker.Unlinear)
	require.Contains(t, v.Violations[0].Text, "(token 30, ")
	require.Equal(t, at(1400), v.Violations[0].At)
	s = newScript(t)
	s.grant(0, 20, 1000).release(1100)
	s.grant(1, 20, 1200).release(1300)
	s.check(checker.Unlinear)
}

// The order of two that were acquired at the same time is not known, but their tokens still differ.
func TestTokensOfConcurrentAcquisitions(t *testing.T) {
	s := newScript(t)
	s.slowGrant(0, 20, 1000, 3000) // returned after its deadline
	s.slowGrant(1, 10, 990, 2990)
	s.kill(0, 4000)
	s.kill(1, 4000)
	s.check()
	s.slowGrant(2, 10, 1001, 2990)
	s.kill(2, 4000)
	s.check(checker.Unlinear)
}
