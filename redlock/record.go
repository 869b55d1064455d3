package redlock

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// record is what a node knows of a key's sequence. The text that it has on a server is described at
// recordFunction.
type record struct {
	granted     int64
	attempts    int   // how often granted was
	grantedAt   int64 // when, in milliseconds since 1970 by the server's clock; 0 if not known
	completed   int64
	beganAt     int64  // when completed was granted; 0 if not known
	completedAt int64  // and when it was completed
	before      int64  // what was granted before granted
	attempted   int    // how often before was
	label       string // of the last grant
	labelBefore string // of the grant before
	owner       string // of the last grant; empty if that was taken back
}

const (
	recordVersion = "1"
	recordFields  = 13
	recordDigits  = 16 // of a number, at most
)

// parseRecord reads the text of a record; nil if it is none.
func parseRecord(text string) *record {
	fields := strings.SplitN(text, " ", recordFields)
	if len(fields) != recordFields || fields[0] != recordVersion {
		return nil
	}
	if strings.ContainsAny(fields[1]+fields[10]+fields[11], "\t\n\v\f\r") { // blanks to the scripts
		return nil
	}
	var numbers [8]int64
	for i := range numbers {
		digits := fields[2+i]
		if len(digits) > recordDigits || strings.Trim(digits, "0123456789") != "" {
			return nil
		}
		var err error
		if numbers[i], err = strconv.ParseInt(digits, 10, 64); err != nil || numbers[i] > MaxSequence { //mutant:record-beyond-the-exact/2
			return nil
		}
	}
	return &record{
		granted: numbers[0], attempts: int(numbers[1]), grantedAt: numbers[2],
		completed: numbers[3], beganAt: numbers[4], completedAt: numbers[5],
		before: numbers[6], attempted: int(numbers[7]),
		label: unescapeLabel(fields[10]), labelBefore: unescapeLabel(fields[11]), owner: fields[12],
	}
}

// text is the record as restoreScript takes it: of no process, and without a time of another
// server's clock but the pair.
func (r *record) text() string {
	return fmt.Sprintf("%s  %d %d 0 %d %d %d %d %d %s %s %s", recordVersion, r.granted, r.attempts, r.completed, r.beganAt, r.completedAt,
		r.before, r.attempted, escapeLabel(r.label), escapeLabel(r.labelBefore), r.owner)
}

// merge takes over what another node knows and this one does not: the largest number granted, with
// what belongs to it, and the largest completed, with when.
func (r *record) merge(other *record) {
	if other.granted > r.granted || other.granted == r.granted && other.attempts > r.attempts {
		completed, beganAt, completedAt := r.completed, r.beganAt, r.completedAt
		*r = *other
		r.completed, r.beganAt, r.completedAt = completed, beganAt, completedAt
	}
	if other.completed > r.completed || other.completed == r.completed && r.beganAt == 0 {
		r.completed, r.beganAt, r.completedAt = other.completed, other.beganAt, other.completedAt
	}
}

// without returns the record as it was before an owner's grant, if that was the last.
func (r *record) without(owner string) *record {
	if owner == "" || r.owner != owner {
		return r
	}
	earlier := *r
	earlier.granted, earlier.attempts, earlier.grantedAt, earlier.label, earlier.owner = r.before, r.attempted, 0, r.labelBefore, ""
	return &earlier
}

// MaxLabelLength bounds a label in bytes, see WithLabel.
const MaxLabelLength = 256

// WithLabel has the nodes record a text with the number of WithOnce or WithOnceAt, for others to
// read: Sequence.Label and DoneError.Label are that of the last grant. It decides nothing. It is at
// most MaxLabelLength bytes of UTF-8; without WithOnce it has no effect.
func WithLabel(text string) LeaseOption {
	return leaseOption(func(l *leaseConfig) error {
		if len(text) > MaxLabelLength || !utf8.ValidString(text) {
			return &OptionError{"WithLabel", fmt.Sprintf("must be at most %d bytes of UTF-8, not %d", MaxLabelLength, len(text))}
		}
		l.label = text
		return nil
	})
}

// escapeLabel makes a label a field of a record: without blanks.
func escapeLabel(label string) string { return url.QueryEscape(label) }

// unescapeLabel returns the label in a field, and none for a text that escapeLabel does not make.
func unescapeLabel(field string) string {
	label, err := url.QueryUnescape(field)
	if err != nil || len(label) > MaxLabelLength || !utf8.ValidString(label) {
		return ""
	}
	return label
}
