package wire

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Record is what a node knows of a key's sequence. The text that it has on a server is described in
// lib/record.lua.
type Record struct {
	Granted     int64
	Attempts    int   // how often Granted was
	GrantedAt   int64 // when, in milliseconds since 1970 by the server's clock; 0 if not known
	Completed   int64
	BeganAt     int64  // when Completed was granted; 0 if not known
	CompletedAt int64  // and when it was completed
	Before      int64  // what was granted before Granted
	Attempted   int    // how often Before was
	Label       string // of the last grant
	LabelBefore string // of the grant before
	Mark        Mark   // of a pause; zero for none
	Ticks       bool   // the numbers are times in ms
	Owner       string // of the last grant; empty if that was taken back
}

// Mark is that of a pause, see pause.lua.
type Mark struct {
	Version uint64 // the fencing token of the lease under which it was written
	Floor   int64  // no tick is granted that was due before, in milliseconds since 1970
	At      int64  // when it was written, by the writer
	By      string // who did, and why, as they said
	Why     string
}

const (
	markFields = 5
	// MaxPauseText bounds who paused and why, in bytes each.
	MaxPauseText = 256
)

// parseMark reads the text of a mark; the zero one if it is none.
func parseMark(text string) Mark {
	fields := strings.Split(text, "/")
	if len(fields) != markFields {
		return Mark{}
	}
	var numbers [3]int64
	for i := range numbers {
		n, ok := recordNumber(fields[i])
		if !ok {
			return Mark{}
		}
		numbers[i] = n
	}
	if numbers[0] == 0 {
		return Mark{}
	}
	return Mark{Version: uint64(numbers[0]), Floor: numbers[1], At: numbers[2], By: unescapeLabel(fields[3]), Why: unescapeLabel(fields[4])}
}

func (m Mark) text() string {
	if m.Version == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d/%d/%s/%s", m.Version, m.Floor, m.At, escapeLabel(m.By), escapeLabel(m.Why))
}

// recordNumber reads one of the numbers of a record.
func recordNumber(digits string) (n int64, ok bool) {
	if len(digits) > recordDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n <= MaxSequence
}

const (
	recordVersion = "1"
	recordFields  = 15
	recordOfTicks = "t"
	recordDigits  = 16 // of a number, at most
)

// MaxSequence bounds the numbers of a sequence: scripts count in doubles, which are exact up to
// 2^53.
const MaxSequence = 1<<53 - 1

// ParseRecord reads the text of a record; nil if it is none.
func ParseRecord(text string) *Record {
	fields := strings.SplitN(text, " ", recordFields)
	if len(fields) != recordFields || fields[0] != recordVersion {
		return nil
	}
	if strings.ContainsAny(fields[1]+fields[10]+fields[11]+fields[12], "\t\n\v\f\r") { // blanks to the scripts
		return nil
	}
	if fields[13] != "" && fields[13] != recordOfTicks {
		return nil
	}
	var numbers [8]int64
	for i := range numbers {
		n, ok := recordNumber(fields[2+i])
		if !ok {
			return nil
		}
		numbers[i] = n
	}
	return &Record{
		Granted: numbers[0], Attempts: int(numbers[1]), GrantedAt: numbers[2],
		Completed: numbers[3], BeganAt: numbers[4], CompletedAt: numbers[5],
		Before: numbers[6], Attempted: int(numbers[7]),
		Label: unescapeLabel(fields[10]), LabelBefore: unescapeLabel(fields[11]), Mark: parseMark(fields[12]),
		Ticks: fields[13] != "", Owner: fields[14],
	}
}

// Text is the record as restore.lua takes it: of no process, and without a time of another server's
// clock but the pair.
func (r *Record) Text() string {
	ticks := ""
	if r.Ticks {
		ticks = recordOfTicks
	}
	return fmt.Sprintf("%s  %d %d 0 %d %d %d %d %d %s %s %s %s %s", recordVersion, r.Granted, r.Attempts, r.Completed, r.BeganAt, r.CompletedAt,
		r.Before, r.Attempted, escapeLabel(r.Label), escapeLabel(r.LabelBefore), r.Mark.text(), ticks, r.Owner)
}

// Merge takes over what another node knows and this one does not: the largest number granted, with
// what belongs to it, the largest completed, with when, and the mark with the largest version.
func (r *Record) Merge(other *Record) {
	mark := r.Mark
	if other.Mark.Version > mark.Version {
		mark = other.Mark
	}
	defer func() { r.Mark = mark }()
	if other.Granted > r.Granted || other.Granted == r.Granted && other.Attempts > r.Attempts {
		completed, beganAt, completedAt := r.Completed, r.BeganAt, r.CompletedAt
		*r = *other
		r.Completed, r.BeganAt, r.CompletedAt = completed, beganAt, completedAt
	}
	if other.Completed > r.Completed || other.Completed == r.Completed && r.BeganAt == 0 {
		r.Completed, r.BeganAt, r.CompletedAt = other.Completed, other.BeganAt, other.CompletedAt
	}
}

// Without returns the record as it was before an owner's grant, if that was the last.
func (r *Record) Without(owner string) *Record {
	if owner == "" || r.Owner != owner {
		return r
	}
	earlier := *r
	earlier.Granted, earlier.Attempts, earlier.GrantedAt, earlier.Label, earlier.Owner = r.Before, r.Attempted, 0, r.LabelBefore, ""
	return &earlier
}

// MaxLabelLength bounds a label, in bytes.
const MaxLabelLength = 256

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
