package checker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/chaos/checker"
	"github.com/tenure-dev/tenure/tools/harness/fault"
)

func TestAcceptedStaleWriteIsFound(t *testing.T) {
	s := newScript(t)
	older := s.grant(0, 10, 1000).write(1010, true).release(1100)
	s.grant(1, 20, 1200).write(1210, true).release(1300)
	older.write(1220, true)
	s.check(checker.StaleWrite)
}

func TestRefusedStaleWriteIsRight(t *testing.T) {
	s := newScript(t)
	older := s.grant(0, 10, 1000).write(1010, true).release(1100)
	s.grant(1, 20, 1200).write(1210, true).release(1300)
	older.write(1220, false)
	v := s.check()
	require.Equal(t, 1, v.Refused)
	require.Equal(t, 1, v.Late)
}

func TestRefusedHolderIsFound(t *testing.T) {
	s := newScript(t)
	s.grant(0, 10, 1000).write(1010, false).release(1100)
	s.check(checker.RefusedHolder)
}

func TestRefusedHolderOfAnExcludedOverlapIsNot(t *testing.T) {
	s := newScript(t)
	older := s.grant(0, 10, 1000).release(1600)
	s.grant(1, 20, 1500).write(1510, true).release(1700)
	s.strike(fault.FlushAll, 1400, 0)
	older.write(1520, false)
	s.check()

	older.write(1450, false) // before the overlap
	s.check(checker.RefusedHolder)
}

func TestWriteOfAnUnknownLeaseIsFound(t *testing.T) {
	s := newScript(t)
	l := s.grant(0, 10, 1000).release(1100)
	l.token = 11
	l.write(1010, true)
	s.check(checker.StaleWrite)
}
