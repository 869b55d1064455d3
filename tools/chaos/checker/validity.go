package checker

import (
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/report"
)

// tolerance is by how much the library's clock may differ from the journal's: its clock.Tolerance
// is 1 ms, and the rest is for reading two clocks one after the other.
const tolerance = 2 * time.Millisecond

// outlived checks one answer of Err. The lease must not have been valid after its deadline, as it
// was read after the answer, nor after its loss or release.
func outlived(found *report.Violations, l *Lease, valid record.Record) {
	late := valid.At.Sub(valid.Deadline)
	switch {
	case l.End != 0 && valid.At > l.End:
		found.Add(Outlived, "key %s: %s was valid again at %s", l.Key, l, valid.At)
	case late > tolerance:
		found.Add(Outlived, "key %s: %s was valid %s after its deadline", l.Key, l, late)
	}
}
