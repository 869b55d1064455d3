package checker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// disordered is a history whose second token is the smaller one.
func disordered(t *testing.T) *script {
	s := newScript(t)
	s.grant(0, 20, 1000).release(1100)
	s.grant(1, 10, 1200).release(1300)
	return s
}

func TestTokenOutOfOrderIsFound(t *testing.T) {
	disordered(t).check(checker.Disorder, checker.Unlinear)
}

func TestTokenOutOfOrderIsFoundAcrossOthers(t *testing.T) {
	s := newScript(t)
	s.grant(0, 20, 1000).release(1100)
	s.grant(1, 30, 1200).release(1300)
	s.grant(2, 25, 1400).release(1500)
	v := s.check(checker.Disorder, checker.Unlinear)
	require.Contains(t, v.Violations[0].Text, "(token 30, ")
}

func TestRepeatedTokenIsFound(t *testing.T) {
	s := newScript(t)
	s.grant(0, 20, 1000).release(1100)
	s.grant(1, 20, 1200).release(1300)
	s.check(checker.Disorder, checker.Unlinear)
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
	s.check(checker.Disorder, checker.Unlinear)
}

func TestTokenExclusion(t *testing.T) {
	const second = time.Second
	for name, test := range map[string]struct {
		strikes func(*script)
		want    bool
	}{
		"clock ahead and flush": {func(s *script) {
			s.strike(plan.ClockForward, 900, second)
			s.strike(plan.FlushAll, 1150, 0)
		}, true},
		"clock ahead, put right, and flush": {func(s *script) {
			s.jump(plan.ClockForward, 100, 200, second)
			s.strike(plan.FlushAll, 1150, 0)
		}, true},
		"clock ahead, put right long before": {func(s *script) {
			s.jump(plan.ClockForward, -500, -100, second)
			s.strike(plan.FlushAll, 1150, 0)
		}, false},
		"clock ahead by the skew": {func(s *script) {
			s.strike(plan.ClockForward, 900, 500*msec)
			s.strike(plan.FlushAll, 1150, 0)
		}, false},
		"clock ahead by the skew, put right": {func(s *script) {
			s.jump(plan.ClockForward, 900, 1120, 500*msec)
			s.strike(plan.FlushAll, 1150, 0)
		}, false},
		"clock ahead later": {func(s *script) {
			s.strike(plan.ClockForward, 1120, second)
			s.strike(plan.FlushAll, 1150, 0)
		}, false},
		"clock behind": {func(s *script) {
			s.strike(plan.ClockBack, 900, -second)
			s.strike(plan.FlushAll, 1150, 0)
		}, false},
		"only flush": {func(s *script) { s.strike(plan.FlushAll, 1150, 0) }, false},
		"only clock": {func(s *script) { s.strike(plan.ClockForward, 900, second) }, false},
		"flush before": {func(s *script) {
			s.strike(plan.ClockForward, 900, second)
			s.strike(plan.FlushAll, 990, 0)
		}, false},
		"restart without data": {func(s *script) {
			s.strike(plan.ClockForward, 900, second)
			s.strike(plan.RestartEmpty, 1150, 0)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := disordered(t)
			test.strikes(s)
			if !test.want {
				s.check(checker.Disorder, checker.Unlinear)
				return
			}
			require.Len(t, s.check().Excused, 1)
		})
	}
}
