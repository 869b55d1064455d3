package resp

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

const (
	// maxReply bounds the memory that a reply takes in the client. The largest replies of the
	// scripts, for 128 keys whose holders all have the longest payload, take less than half of it.
	maxReply = 1 << 20
	// elementSize is the memory that the client reserves for an element of a list before it comes.
	elementSize = 40
	// maxLine bounds a reply that is one line: an error, or a word.
	maxLine = 1 << 14
	// maxDigits and maxLength bound the digits of numbers and of lengths. Longer ones, with leading
	// zeros, would take more memory than elementSize counts.
	maxDigits, maxLength = 20, 9
	// maxDepth is how deep lists may be nested.
	maxDepth = 16
	// maxSaid is how much of an error is quoted, in bytes.
	maxSaid = 256
	// leastSpace is the minimum room for a read, in bytes.
	leastSpace = 4 << 10
)

// replies parses what a server sends. Only whole messages are passed on.
type replies struct {
	bytes []byte // that came and were not passed on yet
	whole int    // bytes up to here are whole messages
	at    int    // bytes up to here were parsed

	used  int           // memory that the current message takes
	open  [maxDepth]int // by nested list: the elements that are still to come
	depth int           // how many lists are open
	named bool          // the message is a push whose first element is to come
}

// space returns where the next bytes are to be read to.
func (r *replies) space() []byte {
	if cap(r.bytes)-len(r.bytes) < leastSpace {
		r.bytes = append(make([]byte, 0, 2*cap(r.bytes)+leastSpace), r.bytes...)
	}
	return r.bytes[len(r.bytes):cap(r.bytes)]
}

// pass copies as much of the whole messages as there is room for.
func (r *replies) pass(to []byte) int {
	n := copy(to, r.bytes[:r.whole])
	r.whole -= n
	r.at -= n
	if r.bytes = r.bytes[:copy(r.bytes, r.bytes[n:])]; len(r.bytes) == 0 && cap(r.bytes) > maxLine {
		r.bytes = nil // a large reply is rare: release its memory
	}
	return n
}

// came parses the next n bytes of the space.
func (r *replies) came(n int, o *owed) *Error {
	r.bytes = r.bytes[:len(r.bytes)+n]
	for r.at < len(r.bytes) {
		e, wrong := parse(r.bytes[r.at:], maxReply-r.used)
		if wrong != nil || e.size == 0 {
			return wrong
		}
		if wrong = r.take(&e, o); wrong != nil {
			return wrong
		}
		if r.at += e.size; r.depth == 0 {
			r.whole, r.used = r.at, 0
		}
	}
	return nil
}

// element is an element of a message: a whole value, or the first line of a list.
type element struct {
	typ    byte
	size   int    // in bytes; 0 if the element is not complete
	text   []byte // of a value
	length int    // of a list: the number of its elements
}

var (
	errTooLarge = &Error{What: "a reply that is too large"}
	errEnd      = &Error{What: "a text that does not end where it should"}
)

// parse parses the element at the beginning of b, which may take at most so much memory.
func parse(b []byte, most int) (e element, wrong *Error) {
	if e.typ = b[0]; strings.IndexByte("$+-:_,#!=(*%~>", e.typ) < 0 {
		return e, &Error{What: fmt.Sprintf("a type of reply that does not exist or is not used here: %q", e.typ)}
	}
	const longest = 1 + maxLine + len("\r\n")
	end := bytes.IndexByte(b[:min(len(b), longest)], '\n')
	switch {
	case end < 0 && len(b) >= longest:
		return e, &Error{What: "a line that is too long"}
	case end < 0:
		return e, nil
	case end < 2 || b[end-1] != '\r':
		return e, &Error{What: "a line that does not end as it should"}
	}
	line, size := b[1:end-1], end+1
	isNone := string(line) == "-1"
	switch e.typ {
	case '+', '-', ',', '(':
		e.text = line
	case ':':
		if _, err := strconv.ParseInt(string(line), 10, 64); err != nil || len(line) > maxDigits {
			wrong = &Error{What: "a number that is none"}
		}
	case '_', '#': // a client counts the bytes of these
		if len(line) > 1 || (len(line) == 1) != (e.typ == '#') {
			wrong = errEnd
		}
	case '*', '%', '~', '>':
		if e.typ == '*' && isNone {
			break
		}
		if e.length, wrong = length(line, most/elementSize); e.typ == '%' {
			e.length *= 2
		}
	case '$', '=', '!':
		if e.typ == '$' && isNone {
			break
		}
		var n int
		if n, wrong = length(line, most); wrong != nil {
			break
		}
		end = size + n
		switch rest := b[min(end, len(b)):]; {
		case !strings.HasPrefix("\r\n", string(rest[:min(len(rest), 2)])):
			wrong = errEnd
		case len(rest) < 2:
			return e, nil
		}
		e.text, size = b[size:end], end+2
	}
	e.size = size
	return e, wrong
}

// length parses a length of at most most.
func length(line []byte, most int) (int, *Error) {
	n, err := strconv.ParseUint(string(line), 10, 31)
	switch {
	case err != nil || len(line) > maxLength:
		return 0, &Error{What: "a length that is none"}
	case int(n) > most:
		return 0, errTooLarge
	}
	return int(n), nil
}

// take checks the next element, and follows the nesting of lists.
func (r *replies) take(e *element, o *owed) *Error {
	var wrong *Error
	switch {
	case r.depth == 0:
		if r.named = e.typ == '>'; !r.named {
			wrong = r.reply(e, o)
		} else if e.length < 2 {
			wrong = &Error{What: "a list that is too short"}
		}
	case e.typ == '>':
		wrong = &Error{What: "a push inside of a reply"}
	case r.named:
		r.named = false
		wrong = push(e, o)
	}
	if r.used += len(e.text) + e.length*elementSize; wrong == nil && r.used > maxReply {
		wrong = errTooLarge
	}
	switch {
	case wrong != nil:
		return wrong
	case e.length > 0 && r.depth == maxDepth:
		return &Error{What: "a reply that is nested too deeply"}
	case e.length > 0:
		r.open[r.depth] = e.length
		r.depth++
		return nil
	}
	for ; r.depth > 0; r.depth-- {
		if r.open[r.depth-1]--; r.open[r.depth-1] > 0 {
			break
		}
	}
	return nil
}

// reply checks the beginning of a reply against the answer that is owed next.
func (r *replies) reply(e *element, o *owed) *Error {
	switch first := o.first(); {
	case first == nothing && e.typ == '-':
		return &Error{What: "a reply to no command", Said: said(e.text)}
	case first == nothing:
		return &Error{What: "a reply to no command"}
	case first == confirmation && e.typ != '-' && e.typ != '!':
		return &Error{What: "no answer to SUBSCRIBE"}
	}
	o.take()
	if o.count++; o.count == 1 && e.typ == '-' {
		o.said = said(e.text)
	}
	return nil
}

// said returns the part of an error that is quoted.
func said(text []byte) string {
	return strings.ToValidUTF8(string(text[:min(len(text), maxSaid)]), "?")
}

// push checks the first element of a push, which is its kind.
func push(e *element, o *owed) *Error {
	if e.typ != '$' && e.typ != '+' {
		return &Error{What: "a push of no kind"}
	}
	switch string(e.text) {
	case "subscribe", "psubscribe", "ssubscribe":
		if o.first() != confirmation {
			return &Error{What: "the confirmation of a subscription that nobody asked for"}
		}
		o.take()
	}
	return nil
}
