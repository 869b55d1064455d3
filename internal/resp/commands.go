package resp

// commands reads along what a client sends: lists of texts with their lengths, one for each
// command.
type commands struct {
	state   commandState
	number  int     // that is being read
	left    int     // words of the command that are still to come, the present one included
	words   int     // of the command
	skip    int     // bytes of the present word that are still to come, its line end included
	name    keyword // its first word
	section keyword // and its second one
}

type commandState uint8

const (
	atCommand commandState = iota
	inWords                // the number of words
	atWord
	inLength // of a word
	inWord
)

// maxWord is how long a word of a client may be: what a server takes.
const maxWord = 512 << 20

// keyword is the beginning of a word, in capitals.
type keyword struct {
	text [24]byte
	n    int
}

func (k *keyword) add(b []byte) {
	for _, c := range b[:min(len(b), len(k.text)-k.n)] {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		k.text[k.n] = c
		k.n++
	}
}

func (k *keyword) bytes() []byte { return k.text[:k.n] }

// scan reads along and adds what is owed for each command that ends in b.
func (c *commands) scan(b []byte, o *owed) *Error {
	for i := 0; i < len(b); {
		if c.state == atWord {
			i += c.quick(b[i:])
			if i == len(b) {
				return nil
			}
		}
		switch c.state {
		case atCommand, atWord:
			if want := [...]byte{atCommand: '*', atWord: '$'}[c.state]; b[i] != want {
				return &Error{What: "the client sent what is no command"}
			}
			c.state++
			c.number = 0
			i++
		case inWords, inLength:
			d := b[i]
			i++
			switch {
			case d >= '0' && d <= '9' && c.number <= maxWord:
				c.number = c.number*10 + int(d-'0')
			case d == '\n':
				c.announce()
			case d != '\r':
				return &Error{What: "the client sent what is no command"}
			}
		case inWord:
			n := min(c.skip, len(b)-i)
			if c.words-c.left < 2 {
				c.read(b[i : i+max(min(n, c.skip-2), 0)])
			}
			c.skip -= n
			i += n
			if c.skip > 0 {
				continue
			}
			c.state = atWord
			if c.left--; c.left == 0 {
				c.state = atCommand
				o.sent(c.name.bytes(), c.section.bytes(), c.words)
			}
		}
	}
	return nil
}

// quick passes over the words whose length and all of whose bytes are in b, the last word of the
// command and the first two excepted, and returns how many bytes these are.
func (c *commands) quick(b []byte) (passed int) {
	for c.left > 1 && c.words-c.left >= 2 {
		n, i := 0, passed+1
		for ; i < len(b) && i < passed+8 && b[i] >= '0' && b[i] <= '9'; i++ {
			n = n*10 + int(b[i]-'0')
		}
		end := i + 2 + n + 2
		if end > len(b) || b[passed] != '$' || b[i] != '\r' || b[i+1] != '\n' {
			break
		}
		passed = end
		c.left--
	}
	return passed
}

// read takes a part of the first two words.
func (c *commands) read(part []byte) {
	switch {
	case c.words == c.left:
		c.name.add(part)
	case c.name.n > 0 && (c.name.text[0] == 'H' || c.name.text[0] == 'S'): // others have no sections here
		c.section.add(part)
	}
}

// announce takes a number.
func (c *commands) announce() {
	if c.state == inWords {
		c.words, c.left = c.number, c.number
		c.name.n, c.section.n = 0, 0
		c.state = atWord
		return
	}
	c.skip = c.number + len("\r\n")
	c.state = inWord
}

// sent notes what is owed for a command.
func (o *owed) sent(name, section []byte, words int) {
	leaving := o.leaving
	o.leaving = false
	switch string(name) {
	case "HELLO":
		if words > 1 {
			o.resp3 = string(section) == "3"
		}
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE":
		o.subscribed = true
		o.add(confirmation, max(words-1, 1))
		return
	case "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE":
		o.leaving = true
		o.add(pushes, 1)
		return
	case "PING":
		if leaving {
			o.add(pong, 1)
			return
		}
	}
	o.add(anything, 1)
}
