package verdict

import (
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/journal"
)

// tolerance is by how much the library's clock may differ from the journal's: its clock.Tolerance is 1 ms, and the
// rest is for reading two clocks one after the other.
const tolerance = 2 * time.Millisecond

// outlived checks one answer of Err. The lease must not have been valid after its deadline, as it was read after the
// answer, nor after its loss or release.
func outlived(l *Lease, valid journal.Record) []Violation {
	if l.End != 0 && valid.At > l.End {
		return []Violation{{Outlived, fmt.Sprintf("key %s: %s was valid again at %s", l.Key, l, valid.At)}}
	}
	if late := valid.At.Sub(valid.Deadline); late > tolerance {
		return []Violation{{Outlived, fmt.Sprintf("key %s: %s was valid %s after its deadline", l.Key, l, late)}}
	}
	return nil
}
