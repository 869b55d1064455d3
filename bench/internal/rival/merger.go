package rival

import (
	"context"
	"fmt"
)

// merger is what the batching floor needs besides to merge the releases of a batch into one command
// a node: one call of a script, one MGET and one DEL, in front of the acquisitions. That takes the
// servers less than a script for each.
//
// A release overtakes what is before it in the batch, so a new segment begins with a release whose
// own acquisition is in this one: it was decided by other nodes. What a caller does with a key
// keeps its order. A release and the acquisition of another caller may change places: both are
// under way.
type merger struct {
	segment  int       // the number of the current one; begins at 1
	releases []string  // keys in it
	freed    []*ballot // the same
	acquired []*ballot // in it

	ordered []*ballot // all of a batch in the order of the answers
	answers []int     // how many of them a command answers
}

// compareAndDeleteAll is compareAndDelete of many keys. It answers with a digit for each.
const compareAndDeleteAll = `local values = redis.call("mget",unpack(KEYS))
local mine, n, answer = {}, 0, {}
for i = 1, #KEYS do
  if values[i] == ARGV[1] then
    n = n + 1
    mine[n] = KEYS[i]
    answer[i] = "1"
  else
    answer[i] = "0"
  end
end
if n > 0 then redis.call("del",unpack(mine)) end
return table.concat(answer)`

// mergeMost bounds the keys of one script: Lua's unpack has room for 8,000.
const mergeMost = 1000

func openMerger(c Config) (Rival, error) { return newBatcher(c, compareAndDeleteAll, true) }

// exchangeMerged is exchange with one command for the releases of a segment.
func (w *writer) exchangeMerged(batch []*ballot) {
	w.commands, w.ordered, w.answers = w.commands[:0], w.ordered[:0], w.answers[:0]
	w.segment++
	for _, v := range batch {
		switch {
		case !v.release:
			v.segments[w.node] = w.segment
			w.acquired = append(w.acquired, v)
			continue
		case v.acquired.segments[w.node] == w.segment || len(w.releases) == mergeMost:
			w.endSegment()
		}
		w.releases, w.freed = append(w.releases, v.key), append(w.freed, v)
	}
	w.endSegment()
	rest := w.ordered
	for i, reply := range w.client.DoMulti(context.Background(), w.commands...) {
		n := w.answers[i]
		of := rest[:n]
		rest = rest[n:]
		err := reply.Error()
		if err == nil && of[0].release {
			var digits string
			if digits, err = reply.ToString(); err == nil && len(digits) != n {
				err = fmt.Errorf("rival: %d keys were released with %d answers", n, len(digits))
			}
		}
		for _, v := range of {
			v.count(err)
		}
	}
}

// endSegment makes the commands of a segment, and begins the next.
func (w *writer) endSegment() {
	if len(w.releases) > 0 {
		w.commands = append(w.commands, w.free(w.releases...))
		w.ordered, w.answers = append(w.ordered, w.freed...), append(w.answers, len(w.freed))
	}
	for _, v := range w.acquired {
		w.commands = append(w.commands, w.command(v))
		w.ordered, w.answers = append(w.ordered, v), append(w.answers, 1)
	}
	w.releases, w.freed, w.acquired = w.releases[:0], w.freed[:0], w.acquired[:0]
	w.segment++
}
