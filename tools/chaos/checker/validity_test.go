package checker_test

import (
	"testing"

	"github.com/tenure-dev/tenure/tools/chaos/checker"
)

func TestErrAfterTheDeadlineIsFound(t *testing.T) {
	deadline := 998 + int(validity/ms)
	s := newScript(t)
	l := s.grant(0, 10, 1000).valid(deadline-1, 998).valid(deadline+2, 998)
	s.check()
	l.valid(deadline+3, 998)
	s.check(checker.Outlived)
}

func TestErrAfterTheLossIsFound(t *testing.T) {
	s := newScript(t)
	s.grant(0, 10, 1000).lost(1200).valid(1201, 998)
	s.check(checker.Outlived)
}

func TestErrAfterTheReleaseIsFound(t *testing.T) {
	s := newScript(t)
	s.grant(0, 10, 1000).release(1200).valid(1201, 998)
	s.check(checker.Outlived)
}
