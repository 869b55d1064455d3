// Package view has the state of a cluster as people see it: jobs, runs, elections, nodes and
// replicas. The command prints the values as tables and JSON, the page as HTML and JSON, so that
// both say the same in the same words.
//
// The JSON is a contract, which testdata/contract.json holds. Each field is always there. Times are
// RFC 3339 in UTC with milliseconds, durations are in milliseconds. A value that is not known, or
// does not exist, is null; so no text is empty. Use the function JSON to write it.
package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// JSON encodes a document by the contract, on one line. It writes null for each empty text: :""
// occurs only before an empty value, because quotation marks within a text are escaped.
func JSON(document any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(document)
	return bytes.ReplaceAll(bytes.TrimSpace(b.Bytes()), []byte(`:""`), []byte(":null")), err
}

// Time is a time in UTC with milliseconds; zero, in JSON null, if it is not known.
type Time struct{ time.Time }

// At returns a time for people. A time outside of the years 1970 to 9999 counts as not known.
func At(t time.Time) Time {
	if t.Year() < 1970 || t.Year() > 9999 {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

// Clock formats the time of day in the time's zone, with the date if that is not today. It is empty
// if the time is not known.
func (t Time) Clock(now time.Time) string {
	layout := "15:04:05"
	switch y, m, d := now.In(t.Location()).Date(); {
	case t.IsZero():
		return ""
	case t.Year() != y:
		layout = "2006-01-02 15:04:05"
	case t.Month() != m || t.Day() != d:
		layout = "2 Jan 15:04:05"
	}
	return t.Format(layout)
}

// MarshalJSON writes the time, or null for the zero one.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

// Span is a duration; zero, in JSON null, if it is not known.
type Span time.Duration

// MarshalJSON writes milliseconds, with three digits behind the point at most, or null.
func (s Span) MarshalJSON() ([]byte, error) {
	if s == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(time.Duration(s).Microseconds()) / 1000)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Span) UnmarshalJSON(text []byte) error {
	var number float64
	err := json.Unmarshal(text, &number)
	*s = Span(number * float64(time.Millisecond))
	return err
}

// Number is a count or an identifier; zero, in JSON null, if it is not known.
type Number uint64

// MarshalJSON writes the number, or null for zero.
func (n Number) MarshalJSON() ([]byte, error) {
	if n == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(uint64(n))
}

// Said returns the text of an error without the names of packages; empty for nil.
func Said(err error) string {
	if err == nil {
		return ""
	}
	return Plain(err.Error())
}

// Plain returns the text of an error without the names of packages.
func Plain(text string) string {
	for _, of := range []string{"web: ", "admin: ", "redlock: ", "elector: "} {
		text = strings.TrimPrefix(text, of)
	}
	return text
}

// longestError bounds the text of an error, which may come from a server.
const longestError = 400

// Error returns Said for a document: valid UTF-8, and at most longestError characters.
func Error(err error) string {
	return Shortened(strings.ToValidUTF8(Said(err), "\uFFFD"), longestError)
}

// Shortened returns a text of at most so many characters.
func Shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// Counted formats a number of things: 1 job, 2 jobs.
func Counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

// list returns a list that is not nil, even if it is empty: in JSON [].
func list(texts []string) []string { return append([]string{}, texts...) }

// All makes a document of each element. The list is not nil, even if it is empty: in JSON [].
func All[From, To any](all []From, of func(From) To) []To {
	documents := make([]To, 0, len(all))
	for _, one := range all {
		documents = append(documents, of(one))
	}
	return documents
}

// Rough formats a duration for people, in two units at most. assets/app.js of package web formats
// it alike.
func Rough(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 3600:
		return fmt.Sprintf("%d min", s/60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%d d %d h", s/86400, s/3600%24)
	}
}

// String formats how long something took, for people.
func (s Span) String() string {
	d := time.Duration(s)
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d.Microseconds()/100)/10, 'f', -1, 64) + " ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", math.Floor(d.Seconds()*10)/10)
	default:
		return Rough(d)
	}
}
