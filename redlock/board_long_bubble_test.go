//go:build long

package redlock_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A journal has the newest entries first, as many as it keeps; equal ones of a class are counted,
// and one that is repeated is there once, and heard again.
func TestJournal(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		runTick(t, q)
		var heard []string
		stop, err := q.Board().Hear("j", func(e redlock.Entry) { heard = append(heard, e.Text) })
		require.NoError(t, err)
		time.Sleep(time.Second)
		begin := time.Now()
		enter := func(text, class string) {
			e := redlock.Entry{Journal: "j/of me", Text: text, Class: class, Most: 3, Keep: time.Hour}
			_, err := q.Board().Post(t.Context(), nil, []redlock.Entry{e})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		texts := func() (texts []string) {
			entries, err := q.Board().Journal(t.Context(), "j/of me", 10)
			require.NoError(t, err)
			for _, e := range entries {
				require.Equal(t, 3, e.Nodes)
				require.Less(t, begin.Sub(e.At), time.Second)
				texts = append(texts, fmt.Sprintf("%s %d", e.Text, e.Count))
			}
			return texts
		}
		for i := range 4 {
			enter(fmt.Sprint(i), "")
		}
		require.Equal(t, []string{"3 1", "2 1", "1 1"}, texts())
		enter("paused", "p")
		enter("paused again", "p")
		enter("paused again", "p")
		require.Equal(t, []string{"paused again 3", "3 1", "2 1"}, texts())
		again := redlock.Entry{Journal: "j/of me", Text: "4", At: time.Now(), Most: 3, Keep: time.Hour}
		for range 2 {
			_, err := q.Board().Post(t.Context(), nil, []redlock.Entry{again})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		require.Equal(t, []string{"4 1", "paused again 3", "3 1"}, texts())
		synctest.Wait()
		require.Equal(t, []string{"0", "1", "2", "3", "paused", "paused again", "paused again", "4", "4"}, heard, "what is entered again is heard again")
		stop()
		enter("5", "")
		require.Len(t, heard, 9)
		time.Sleep(time.Hour)
		require.Empty(t, texts())
	})
}
