package scheduler_test

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// command has a node carry one out, as somebody else's client would.
func command(t *testing.T, n *redlocktest.Node, words ...string) {
	t.Helper()
	conn, err := n.Dial(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	_, err = conn.Write([]byte(text))
	require.NoError(t, err)
	answer, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.NotContains(t, answer, "-")
}

// What something else has written on most nodes stops a job, and the log says where that is and
// what to do. When it was done the job goes on.
func TestWhatIsDamagedIsSaid(t *testing.T) {
	const lock, record, pause, pauseAll = "tenure:{job/job}", "tenure:{job/job}:register", "tenure:{pause/job/job}:register", "tenure:{pause}:register"
	written := func(value string) func(string) string {
		return func(string) string { return "1 - 5 5 1 " + value }
	}
	for _, test := range []struct {
		name, key string
		damage    func(was string) string
	}{
		{"a record that is cut off", record, func(was string) string { return was[:len(was)-9] }},
		{"a record of another version", record, func(was string) string { return strings.Replace(was, " 1{", " 2{", 1) }},
		{"a register of another version", record, func(was string) string { return "2" + was[1:] }},
		{"ticks settled ahead", record, func(was string) string { return strings.Replace(was, `"cursor":"2000`, `"cursor":"2001`, 1) }},
		{"a pause that is cut off", pause, written(`1{"since":`)},
		{"a pause of all jobs of another version", pauseAll, written(`2{}`)},
		{"a lock that something else wrote", lock, func(string) string { return "mine" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var log journal
				r := c.replica(quiet, scheduler.WithLogger(log.logger()))
				r.add(t, secondly, func() {})
				r.Start()
				until(at(2).Add(500 * time.Millisecond))
				require.Equal(t, []int{1, 2}, c.book.seconds())
				for i, n := range c.fleet.Nodes() {
					if was, _ := n.Get(test.key); i < 2 {
						command(t, n, "SET", test.key, test.damage(was))
					}
				}
				until(at(9).Add(500 * time.Millisecond))
				require.Equal(t, []int{1, 2}, c.book.seconds())
				said := log.lines("level=WARN")
				require.NotEmpty(t, said)
				for _, line := range said {
					require.Contains(t, line, test.key[len("tenure:{"):strings.Index(test.key, "}")])
					require.Regexp(t, "remove the key|until it is deleted|use the same version", line)
				}
				for _, n := range c.fleet.Nodes() {
					command(t, n, "DEL", test.key)
				}
				until(at(20).Add(500 * time.Millisecond))
				require.Contains(t, c.book.seconds(), 20)
			})
		})
	}
}
