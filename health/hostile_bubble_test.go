package health_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/health"
	"github.com/tenure-dev/tenure/redlock"
)

// hostile is an error of a part, whose methods do what the test says.
type hostile struct{ do func() }

func (h *hostile) Error() string     { h.do(); return "an error" }
func (h *hostile) ErrorType() string { h.do(); return "a_type" }

// An error that cannot be asked what it is counts as a panic of its part.
func TestErrorThatPanics(t *testing.T) {
	for name, err := range map[string]error{
		"nil QuorumError":           (*redlock.QuorumError)(nil),
		"nil NodeError":             (*redlock.NodeError)(nil),
		"nil LostError":             (*redlock.LostError)(nil),
		"nil error of its own":      (*hostile)(nil),
		"QuorumError of a nil node": &redlock.QuorumError{Nodes: 3, Need: 2, Errs: []*redlock.NodeError{nil}},
		"NodeError without a cause": &redlock.NodeError{Node: "a:1"},
		"panic with such an error":  &hostile{func() { panic(&hostile{func() { panic(&hostile{}) }}) }},
	} {
		t.Run(name, func(t *testing.T) {
			now := err
			h := handler(health.Named("part", part(func() error { return now })))
			for _, target := range []string{"/readyz", "/livez"} {
				require.NotPanics(t, func() { probe(h, target) })
			}
			requireNotReady(t, h, "[-]part failed: panic")
			requireState(t, h, "part", "failed: panic")
			now = nil
			requireReady(t, h)
		})
	}
}

// An error does not have more time than its part.
func TestErrorThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := &hostile{func() { time.Sleep(time.Minute) }}
		h := handler(health.Check("part", func(context.Context) error { return err }))
		start := time.Now()
		requireNotReady(t, h, "[-]part failed: deadline_exceeded")
		requireState(t, h, "part", "failed: deadline_exceeded")
		require.Equal(t, 2*health.Timeout, time.Since(start))
		time.Sleep(time.Hour)
		synctest.Wait()
		err.do = runtime.Goexit
		requireNotReady(t, h, "[-]part failed: _OTHER")
	})
}

// A time that JSON cannot write is left out, and so is that of a node in no quarantine.
func TestQuarantineBeyondAllYears(t *testing.T) {
	for until, said := range map[time.Time]string{
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC): "9999-12-31T00:00:00Z",
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC):  "",
		{}: "",
	} {
		h := handler(part(func() error {
			return &redlock.NodeError{Node: "a:1", Err: &redlock.ConditionError{Condition: redlock.ConditionQuarantined, Until: until}}
		}))
		require.Equal(t, said, verbose(t, h, "/readyz").Parts[0].Nodes[0].Until)
	}
}
