package redlock

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

// trouble is something wrong that lasts. It is logged when it begins, once for each further reason,
// and when it is over. Some troubles are logged again from time to time while they last.
type trouble uint8

const (
	silent      trouble = iota // a node does not answer
	voteless                   // a node answers, and does not vote
	lacking                    // a node votes, and lacks something: its trial says so
	uncalling                  // the same: a subscription was refused
	unconnected                // the same: new connections fail
	forgetful                  // a node votes, and may forget leases
	wrongClock
	unwritten  // a node cannot keep its roster
	refused    // this process counts nothing, because others have other nodes
	differing  // others have other nodes, and this process goes on
	excluding  // another process was refused for its list of nodes
	damagedKey // a node does not vote for a key
	noQuorum   // no quorum answers a waiter of a key
	longLease  // a lease has a longer TTL than any process declares
	flushed    // a node lost a lease that it had
	troubles
)

// said has the level and the texts of each trouble in the log; an empty text is not logged.
var said = [troubles]struct {
	level               slog.Level
	begins, lasts, ends string
}{
	silent:      {slog.LevelWarn, "node failing", "node still failing", "node answers again"},
	voteless:    {slog.LevelWarn, "node does not vote", "node still does not vote", "node votes"},
	lacking:     {slog.LevelWarn, lacks, "", lacksNothing},
	uncalling:   {slog.LevelWarn, lacks, "", lacksNothing},
	unconnected: {slog.LevelWarn, lacks, "", lacksNothing},
	forgetful:   {slog.LevelWarn, "node may forget leases", "", ""},
	wrongClock:  {slog.LevelWarn, "a server's clock is wrong", "", "a server's clock is right again"},
	unwritten: {slog.LevelWarn, "a node cannot keep who uses it: a process with another list of nodes may not be noticed there", "",
		"a node keeps who uses it again"},
	refused: {slog.LevelError, "this process is refused, as others use other nodes: it acquires nothing", "", "this process is not refused any more"},
	differing: {slog.LevelError, "processes do not agree on their nodes: two leases on a key may be live at once", "",
		"processes agree on their nodes again"},
	excluding:  {slog.LevelWarn, "a process was refused that has other nodes", "", ""},
	damagedKey: {slog.LevelWarn, "node does not vote for a key", "", "node votes for a key again"},
	noQuorum: {slog.LevelWarn, "no quorum to acquire a key that is waited for", "no quorum to acquire a key that is waited for",
		"a quorum answers again"},
	longLease: {slog.LevelWarn, "a lease has a longer TTL than any process of the prefix is known to use: unless its process has just begun, a server that is restarted may vote too early for it",
		"", ""},
	flushed: {slog.LevelWarn, "a node lost a lease: something flushes, evicts or deletes keys there, or its clock jumped",
		"a node still loses leases", ""},
}

const (
	lacks        = "node lacks what it should have"
	lacksNothing = "node lacks nothing any more"
)

// matter is one case of a trouble: its node (nil for none) and what of the node it is about, such
// as a key (empty for nothing).
type matter struct {
	trouble trouble
	node    *member
	of      string
}

// news logs troubles. It notes them with mu held, and logs without. It is safe for concurrent use.
type news struct {
	log   *slog.Logger
	clock *clock.Clock
	lines *lines

	some [troubles]atomic.Int32 // how many cases of each there are
	mu   sync.Mutex
	told map[matter]*telling // guarded by mu
}

// telling is what was logged of a case. A reminder follows a minute after it began, two minutes
// later, four, and so on, and then once an hour.
type telling struct {
	words []string // one for each reason that was logged
	since clock.Instant
	noted clock.Instant // when it was noted last
	next  clock.Instant // when it is logged again
	pause time.Duration // from the reminder before until next
}

const (
	firstReminder  = time.Minute
	rarestReminder = time.Hour
	maxTold        = 64 // cases of a trouble, or reasons of a case: more say nothing new
)

func newNews(log *slog.Logger, c *clock.Clock, l *lines) *news {
	return &news{log: log, clock: c, lines: l, told: make(map[matter]*telling)}
}

// is notes a trouble and its reason, in a word, and logs it if that is news. It reports whether it
// has logged it. key is the key for which the caller asks; empty for none.
func (n *news) is(m matter, word, key string, args ...any) (told bool) {
	s, now := &said[m.trouble], n.clock.Now()
	text := ""
	n.mu.Lock()
	t, first := n.told[m], telling{since: now, next: now.Add(firstReminder), pause: firstReminder}
	switch {
	case t == nil && n.some[m.trouble].Load() >= maxTold:
		t = &telling{words: []string{word}, next: never} // it is not kept
	case t == nil:
		t = &first
		n.told[m] = t
		n.some[m.trouble].Add(1)
	case s.lasts != "" && now.Sub(t.noted) > firstReminder: // it was not noted for long: it begins again
		*t = first
	}
	t.noted = now
	switch {
	case !slices.Contains(t.words, word) && len(t.words) < maxTold:
		t.words = append(t.words, word)
		text = s.begins
	case s.lasts != "" && now >= t.next:
		t.pause = min(2*t.pause, rarestReminder)
		t.next = now.Add(t.pause)
		text, args = s.lasts, append(args, "for", lasted(t.since, now))
	}
	n.mu.Unlock()
	n.tell(s.level, m, text, key, args...)
	return text != ""
}

// over notes that a trouble has ended, and logs that. It reports whether there was one.
func (n *news) over(m matter, key string) bool {
	if n.some[m.trouble].Load() == 0 {
		return false
	}
	n.mu.Lock()
	t := n.told[m]
	if t != nil {
		delete(n.told, m)
		n.some[m.trouble].Add(-1)
	}
	n.mu.Unlock()
	if t != nil {
		n.tell(slog.LevelInfo, m, said[m.trouble].ends, key, "after", lasted(t.since, n.clock.Now()))
	}
	return t != nil
}

// tell logs a line. Callers pass the line of callers for the key meanwhile, see lines.
func (n *news) tell(level slog.Level, m matter, text, key string, args ...any) {
	if text == "" {
		return
	}
	var about []any
	if m.node != nil {
		about = append(about, "node", m.node.addr)
	}
	if key != "" {
		about = append(about, "key", key)
	}
	n.lines.foreign(key, func() { n.log.Log(context.Background(), level, "redlock: "+text, append(about, args...)...) })
}

// lasted returns how long a trouble has lasted: in whole milliseconds below a second, then in whole
// seconds.
func lasted(since, now clock.Instant) time.Duration {
	d := now.Sub(since)
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}
