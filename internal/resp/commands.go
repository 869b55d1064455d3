package resp

import "bytes"

// commands parses what a client sends: for each command a list of texts with their lengths.
type commands struct {
	rest []byte // the beginning of a command that is not complete
}

// maxWord is the longest word of a client, which is the longest that a server takes.
const maxWord = 512 << 20

var errNoCommand = &Error{What: "the client sent what is no command"}

// scan parses b, and adds the answer that is owed for each command that ends in b.
func (c *commands) scan(b []byte, o *owed) *Error {
	if len(c.rest) > 0 {
		c.rest = append(c.rest, b...)
		b = c.rest
	}
	for len(b) > 0 {
		size, wrong := parseCommand(b, o)
		if wrong != nil {
			return wrong
		}
		if size == 0 {
			break
		}
		b = b[size:]
	}
	c.rest = append(c.rest[:0], b...)
	return nil
}

// parseCommand parses one command, adds the answer that is owed for it, and returns its size; 0 if
// it is not complete.
func parseCommand(b []byte, o *owed) (size int, wrong *Error) {
	list, wrong := parse(b, maxWord)
	switch {
	case wrong != nil || list.typ != '*':
		return 0, errNoCommand
	case list.size == 0:
		return 0, nil
	}
	var first [2][]byte
	size = list.size
	for i := range list.length {
		if size == len(b) {
			return 0, nil
		}
		word, wrong := parse(b[size:], maxWord)
		switch {
		case wrong != nil || word.typ != '$':
			return 0, errNoCommand
		case word.size == 0:
			return 0, nil
		case i < len(first):
			first[i] = word.text
		}
		size += word.size
	}
	return size, o.sent(first[0], first[1], list.length)
}

// sent notes the answer that is owed for a command.
func (o *owed) sent(name, second []byte, words int) *Error {
	is := func(text string) bool { return bytes.EqualFold(name, []byte(text)) }
	ends := func(text string) bool {
		return len(name) >= len(text) && bytes.EqualFold(name[len(name)-len(text):], []byte(text))
	}
	switch {
	case is("HELLO") && words > 1 && string(second) != "3":
		return &Error{What: "no RESP3, which is needed", Said: o.said}
	case ends("UNSUBSCRIBE"), ends("SUBSCRIBE") && words != 2: // also with P or S before it
		return &Error{What: "the client may only subscribe, to one channel at a time"}
	case ends("SUBSCRIBE"):
		o.add(confirmation)
	default:
		o.add(anything)
	}
	return nil
}
