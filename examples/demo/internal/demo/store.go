package demo

import (
	"encoding/json"
	"io"
	"time"

	"github.com/tenure-dev/tenure/examples/demo/internal/service"
)

// serveStore answers a replica's writes until the connection ends.
func (d *Demo) serveStore(conn io.ReadWriter, replica int) {
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var w service.Write
		if in.Decode(&w) != nil || out.Encode(d.write(replica, w)) != nil {
			return
		}
	}
}

// write takes a write of a replica: the store is the resource that the leases protect. It keeps the
// largest fencing token that it has seen, and refuses a smaller one while the check is on. A claim
// only raises what was seen.
func (d *Demo) write(replica int, w service.Write) service.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.changed()
	r := d.replicas[replica]
	late := w.Token < d.seen
	d.seen = max(d.seen, w.Token)
	a := service.Answer{Seen: d.seen, Refused: late && d.switches.Fence}
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
