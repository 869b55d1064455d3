package demonstration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slack is what a busy machine may add to a promised time.
const slack = 10 * time.Second

// Every button of the panel does what it says, and the six incidents are as docs/start.md tells
// them: nothing runs twice and nothing overlaps. Each of the two safeguards is missed when it is
// switched off.
func TestInTheBrowserAlone(t *testing.T) {
	t.Parallel()
	s := open(t, serve(t))
	s.looks()
	for _, speed := range []string{"0.5", "2", "1"} {
		s.Choose("#speed", speed)
		s.ticking()
	}
	s.Choose("#speed", "0")
	s.Wait(`document.getElementById("speed").value === "0"`)
	ticks := s.count("ticks")
	s.Choose("#speed", "1")
	s.ticking()
	require.Greater(t, s.count("ticks"), ticks)
	s.buttons()
	s.incidents()
}
