package checker_test

import (
	"testing"
	"time"

	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// changed is a history in which one job changes its interval from 2 s to 4 s by a deploy at tick
// 20. Ticks of all other jobs are left out of it.
func changed(t *testing.T, kind jobs.Kind) *days {
	s := begin(t)
	s.Jobs = []jobs.Job{{Name: plain, Kind: kind, Every: 2 * time.Second, Then: 4 * time.Second}}
	for tick := 22; tick <= lasts+1; tick++ {
		if clock(instant(tick))%4000 != 0 {
			s.drop("r0.1", of(history.Begin, plain, tick))
			s.drop("r1.1", of(history.Skip, plain, tick))
		}
	}
	s.strike(plan.Deploy, "", instant(20), instant(20)+second)
	s.strike(plan.TakenBack, "", instant(30), instant(30)+second)
	s.requireOnly(t, checker.Untimely, 0)
	return s
}

func TestScheduleThatADeployChanges(t *testing.T) {
	for _, kind := range []jobs.Kind{jobs.Cron, jobs.Duration} {
		// The old schedule goes on, or is there again after a rollout that was taken back.
		for _, tick := range []int{27, 35} {
			s := changed(t, kind)
			s.run("r0.1", plain, tick, instant(tick)+10*ms, 0)
			if v := s.judge(); v.Count(checker.Untimely) != 1 {
				t.Errorf("%s, tick %d: %v", kind, tick, v.Violations)
			}
		}
		// What the new one says is missed of the time before it.
		s := changed(t, kind)
		s.Jobs[0].Every, s.Jobs[0].Then = 4*time.Second, 2*time.Second
		if v := s.judge(); v.Count(checker.Untimely) == 0 {
			t.Errorf("%s: %v", kind, v.Violations)
		}
		// Nobody runs a tick of the new one, although all is well.
		s = changed(t, kind)
		s.drop("r0.1", of(history.Begin, plain, 26))
		s.drop("r1.1", of(history.Skip, plain, 26))
		s.requireOnly(t, checker.Lost, 1)
	}
}
