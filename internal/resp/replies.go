package resp

import (
	"bytes"
	"strings"
)

const (
	// maxReply is how much memory a reply may take in the client. The largest that the scripts
	// give, for 128 keys at once whose holders all have the longest payload, take less than half
	// of it.
	maxReply = 1 << 20
	// elementSize is what an element of a list takes in the client before it has come.
	elementSize = 40
	// maxLine bounds a reply that is one line: an error, or a word.
	maxLine = 1 << 14
	// maxDepth is how many lists may be inside of each other.
	maxDepth = 16
	// maxKept is how much is kept of a line that comes in pieces, or of the first words of a push.
	maxKept = 256
)

// replies reads along what a server sends.
type replies struct {
	state  replyState
	typ    byte          // of the present element
	line   int           // bytes of the present line that came in earlier pieces
	last   byte          // the last of them
	kept   [maxKept]byte // what is kept of it
	left   int           // bytes of the present text that are still to come
	memory int           // that the message may still take

	open  [maxDepth]int // elements that are still to come, of each list that has begun
	depth int           // how many these are

	kinded bool   // the message is a push, or a list that may be one, and its first element is still to come
	push   bool   // the message is a push
	kind   answer // what the message must be

	replied   bool   // a reply has come
	lastWords string // the first reply, if that was an error and the only one
}

type replyState uint8

const (
	atType replyState = iota
	inLine
	inText
	atReturn // of a text
	atNewline
)

// scan reads along, and returns how many bytes are good, and what is wrong with the next one.
func (r *replies) scan(b []byte, o *owed) (good int, wrong *Error) {
	for i := 0; i < len(b); {
		switch r.state {
		case atType:
			if wrong = r.begin(b[i], o); wrong != nil {
				if b[i] == '-' && r.depth == 0 {
					wrong.Said = lineOf(b[i+1:])
				}
				return i, wrong
			}
			i++
			r.line = 0
			switch r.typ { // two that a client does not read as lines
			case '_':
				r.state = atReturn
			case '#':
				r.state, r.left = inText, 1
			default:
				r.state = inLine
			}
		case inLine:
			end := bytes.IndexByte(b[i:], '\n')
			if end < 0 {
				if wrong = r.keep(b[i:]); wrong != nil {
					return i, wrong
				}
				return len(b), nil
			}
			if wrong = r.endLine(b[i:i+end], o); wrong != nil {
				return i, wrong
			}
			i += end + 1
		case inText:
			n := min(r.left, len(b)-i)
			r.read(b[i : i+n])
			if r.left -= n; r.left == 0 {
				r.state = atReturn
			}
			i += n
		case atReturn, atNewline:
			if want := [...]byte{atReturn: '\r', atNewline: '\n'}[r.state]; b[i] != want {
				return i, &Error{What: "a text that does not end where it should"}
			}
			if r.state == atReturn {
				r.state = atNewline
			} else if wrong = r.ended(r.kept[:min(r.line, maxKept)], o); wrong != nil {
				return i, wrong
			}
			i++
		}
	}
	return len(b), nil
}

// lineOf is what there is of a line.
func lineOf(b []byte) string {
	line, _, _ := bytes.Cut(b[:min(len(b), maxKept)], []byte("\r\n"))
	return strings.ToValidUTF8(string(line), "?")
}

// begin takes the type of an element.
func (r *replies) begin(typ byte, o *owed) *Error {
	r.typ = typ
	switch typ {
	case '$', '+', '-', ':', '_', ',', '#', '!', '=', '(', '*', '%', '~':
	case '>':
		if r.depth > 0 {
			return &Error{What: "a push inside of a reply"}
		}
	default:
		return &Error{What: "a type of reply that does not exist or is not used here: " + quote(typ)}
	}
	if r.depth > 0 {
		if r.kinded && r.depth == 1 && typ != '$' && typ != '+' {
			return r.decide(nil, o)
		}
		return nil
	}
	r.memory = maxReply
	r.kind = anything
	r.push = typ == '>'
	r.kinded = r.push || typ == '*' && !o.resp3 && (o.subscribed || o.first() != nil)
	if r.kinded {
		return nil
	}
	return r.reply(o)
}

func quote(c byte) string {
	if c > ' ' && c < 0x7f {
		return "'" + string(c) + "'"
	}
	const digits = "0123456789abcdef"
	return "0x" + string([]byte{digits[c>>4], digits[c&15]})
}

// reply takes a message for the reply that is owed next.
func (r *replies) reply(o *owed) *Error {
	first := o.first()
	isError := r.typ == '-' || r.typ == '!'
	switch {
	case first == nil:
		return &Error{What: "a reply to no command"}
	case first.kind == pushes && r.typ == '-':
		r.kind = pushes
	case first.kind == pushes:
		o.take() // it was answered with pushes alone
		return r.reply(o)
	case first.kind == pong && r.typ != '-' && r.typ != '+' && !r.kinded:
		return &Error{What: "no answer to PING"}
	case first.kind == confirmation && (!isError || first.some):
		return &Error{What: "no answer to SUBSCRIBE"}
	case first.kind == confirmation:
		o.drop()
		return nil
	}
	if r.kind != pushes {
		r.kind = first.kind
	}
	o.take()
	if r.lastWords = ""; !r.replied && r.typ == '-' {
		r.lastWords = "?"
	}
	r.replied = true
	return nil
}

// keep takes a part of a line, which is not its end.
func (r *replies) keep(part []byte) *Error {
	if r.line < maxKept {
		copy(r.kept[r.line:], part)
	}
	r.line += len(part)
	r.last = part[len(part)-1]
	if r.line > maxLine {
		return &Error{What: "a line that is too long"}
	}
	return nil
}

// endLine takes the rest of a line.
func (r *replies) endLine(rest []byte, o *owed) *Error {
	line := rest
	if r.line > 0 {
		if len(rest) > 0 {
			if wrong := r.keep(rest); wrong != nil {
				return wrong
			}
		}
		line = r.kept[:min(r.line, maxKept)]
	} else if len(line) > 0 {
		r.last = line[len(line)-1]
	}
	if r.line == 0 && len(line) == 0 || r.last != '\r' {
		return &Error{What: "a line that does not end as it should"}
	}
	length := max(r.line, len(line)) - 1
	if length > maxLine {
		return &Error{What: "a line that is too long"}
	}
	return r.header(line[:min(length, len(line))], length, o)
}

// header takes the line behind a type, of which at most maxKept bytes are there.
func (r *replies) header(line []byte, length int, o *owed) *Error {
	switch r.typ {
	case '+', '-', ',', '(':
		if r.memory -= length; r.memory < 0 {
			return errTooLarge
		}
		return r.ended(line, o)
	case ':':
		if !isNumber(line) {
			return &Error{What: "a number that is none"}
		}
		return r.ended(line, o)
	}
	isText := r.typ == '$' || r.typ == '=' || r.typ == '!'
	if string(line) == "-1" && (r.typ == '$' || r.typ == '*') {
		return r.ended(nil, o)
	}
	n, ok := parseLength(line)
	switch {
	case !ok:
		return &Error{What: "a length that is none"}
	case n > maxReply:
		return errTooLarge
	case isText:
		if r.memory -= n; r.memory < 0 {
			return errTooLarge
		}
		r.left, r.line, r.state = n, 0, inText
		if n == 0 {
			r.state = atReturn
		}
		return nil
	}
	return r.list(n, o)
}

var errTooLarge = &Error{What: "a reply that is too large"}

// list takes how many elements a list has.
func (r *replies) list(n int, o *owed) *Error {
	if r.typ == '%' {
		n *= 2
	}
	if r.depth == 0 && r.push && n < 2 {
		return &Error{What: "a list that is too short"}
	}
	if r.memory -= n * elementSize; r.memory < 0 {
		return errTooLarge
	}
	if n == 0 {
		return r.ended(nil, o)
	}
	if r.depth == maxDepth {
		return &Error{What: "a reply that is nested too deeply"}
	}
	r.open[r.depth] = n
	r.depth++
	r.state = atType
	return nil
}

// read takes a part of a text.
func (r *replies) read(part []byte) {
	if r.depth == 1 && r.kinded && r.line < maxKept {
		r.line += copy(r.kept[r.line:], part)
	}
}

// ended takes the end of an element that is no list, or an empty one; text is the beginning of it
// where it matters.
func (r *replies) ended(text []byte, o *owed) *Error {
	r.state = atType
	if r.depth == 0 {
		return r.whole(text, o)
	}
	if r.depth == 1 && r.kinded {
		if wrong := r.decide(text, o); wrong != nil {
			return wrong
		}
	}
	for r.depth > 0 {
		if r.open[r.depth-1]--; r.open[r.depth-1] > 0 {
			break
		}
		r.depth--
	}
	return nil
}

// whole takes a message that is no list, or an empty one.
func (r *replies) whole(text []byte, o *owed) *Error {
	if r.lastWords == "?" {
		r.lastWords = lineOf(text)
	}
	if r.kinded {
		return r.decide(nil, o)
	}
	if r.kind == pong && !isPong(r.typ, text) || r.kind == pushes && isPong(r.typ, text) {
		return &Error{What: "no answer to PING"}
	}
	return nil
}

// isPong reports what valkey-go takes for the answer to a PING, if it is a line.
func isPong(typ byte, text []byte) bool {
	if typ == '-' {
		return bytes.HasPrefix(text, []byte("LOADING")) || bytes.HasPrefix(text, []byte("BUSY")) || bytes.Contains(text, []byte("'ping'"))
	}
	return string(text) == "PONG"
}

// decide takes the first element of what is or may be a push; nil if that is no text.
func (r *replies) decide(kind []byte, o *owed) *Error {
	r.kinded = false
	isPush := r.push || o.subscribed
	switch string(kind) {
	case "subscribe", "psubscribe", "ssubscribe":
		if first := o.first(); first == nil || first.kind != confirmation {
			return &Error{What: "the confirmation of a subscription that nobody asked for"}
		}
		o.take()
		return nil
	case "unsubscribe", "punsubscribe", "sunsubscribe":
		if first := o.first(); isPush && first != nil && first.kind == confirmation && first.some {
			return &Error{What: "no answer to SUBSCRIBE"}
		} else if isPush {
			return nil
		}
	case "message", "pmessage", "smessage":
		if isPush {
			return nil
		}
	}
	if r.push {
		if kind == nil {
			return &Error{What: "a push of no kind"}
		}
		return nil
	}
	first := o.first()
	if first != nil && first.kind == pushes {
		o.take()
		first = o.first()
	}
	if first != nil && first.kind == pong && string(kind) != "pong" {
		return &Error{What: "no answer to the command"}
	}
	r.typ = '*'
	r.kinded = true
	wrong := r.reply(o)
	r.kinded, r.kind = false, anything
	return wrong
}

// isNumber reports whether the text is an integer.
func isNumber(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0 && len(text) <= 19
}

// parseLength reads a length.
func parseLength(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(text) > 0 && len(text) < 10
}
