package demo

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	"github.com/tenure-dev/tenure/examples/demo/internal/service"
)

// maxWrite bounds a line that asks for a write.
const maxWrite = 4 << 10

// store is the resource that the leases protect. It keeps the largest fencing token that it has
// seen, and refuses a smaller one while the check is on. The Demo's mutex guards it.
type store struct {
	seen uint64
}

// take decides on a write. Claims are never refused: they only raise what was seen.
func (s *store) take(w service.Write, check bool) (a service.Answer, late bool) {
	late = w.Token < s.seen
	s.seen = max(s.seen, w.Token)
	return service.Answer{Seen: s.seen, Refused: late && check}, late
}

// serveStore answers a replica's writes until the connection ends.
func (d *Demo) serveStore(conn io.ReadWriter, replica int) {
	lines, out := bufio.NewScanner(conn), json.NewEncoder(conn)
	lines.Buffer(nil, maxWrite)
	for lines.Scan() {
		var w service.Write
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			return
		}
		if err := out.Encode(d.write(replica, w)); err != nil {
			return
		}
	}
}

// write takes a write of a replica.
func (d *Demo) write(replica int, w service.Write) service.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.changed()
	r := d.replicas[replica]
	a, late := d.store.take(w, d.switches.Fence)
	if w.Do == service.Claim {
		if w.Token == a.Seen {
			d.claimed = w.Token
			d.inTheMiddle(r)
		}
		return a
	}
	now := time.Now().UnixMilli()
	i := d.add(Item{Kind: KindWrite, Replica: r.name, From: now, To: now, Token: w.Token, Tick: w.Tick, Attempt: w.Attempt, Late: late, End: "accepted"})
	r.wrote = max(r.wrote, w.Token)
	switch {
	case a.Refused:
		i.End = "refused"
		d.ledger.counters.Refused++
		d.say(Good, "the store REFUSES a late write of %s: its token %d is below %d, which it has seen", r.name, w.Token, a.Seen)
	case late:
		i.Bad = true
		d.ledger.counters.Accepted++
		d.say(Bad, "the store TAKES a late write of %s: it does not compare tokens, and %d is below %d", r.name, w.Token, a.Seen)
	}
	return a
}
