package demonstration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The same page without any server: the library, its nodes and its replicas run in the browser.
func TestInTheBrowserAlone(t *testing.T) {
	t.Parallel()
	p := run(t, build(t, "demo"), "-listen", "127.0.0.1:0", "-out", t.TempDir())
	s := open(t, p.url, "browser")
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
