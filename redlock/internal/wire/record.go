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
	Owner       string // of the last grant; empty if that was taken back
}

const (
	recordVersion = "1"
	recordFields  = 13
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
	return &Record{
		Granted: numbers[0], Attempts: int(numbers[1]), GrantedAt: numbers[2],
		Completed: numbers[3], BeganAt: numbers[4], CompletedAt: numbers[5],
		Before: numbers[6], Attempted: int(numbers[7]),
		Label: unescapeLabel(fields[10]), LabelBefore: unescapeLabel(fields[11]), Owner: fields[12],
	}
}

// Text is the record as restore.lua takes it: of no process, and without a time of another server's
// clock but the pair.
func (r *Record) Text() string {
	return fmt.Sprintf("%s  %d %d 0 %d %d %d %d %d %s %s %s", recordVersion, r.Granted, r.Attempts, r.Completed, r.BeganAt, r.CompletedAt,
		r.Before, r.Attempted, escapeLabel(r.Label), escapeLabel(r.LabelBefore), r.Owner)
}

// Merge takes over what another node knows and this one does not: the largest number granted, with
// what belongs to it, and the largest completed, with when.
func (r *Record) Merge(other *Record) {
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
