package resp

// owed is the answers that the server owes, in the order in which it has to give them.
type owed struct {
	answers []answer // from next on
	next    int

	count int    // replies that were given
	said  string // the text of the first reply, if that was an error
}

// answer is the kind of answer that a command has.
type answer uint8

const (
	nothing      answer = iota
	anything            // one reply
	confirmation        // a push, or one error
)

// add notes the answer to a command that was sent.
func (o *owed) add(a answer) {
	if o.next > 0 && len(o.answers) == cap(o.answers) {
		o.answers = o.answers[:copy(o.answers, o.answers[o.next:])]
		o.next = 0
	}
	o.answers = append(o.answers, a)
}

// first returns the answer that is owed next.
func (o *owed) first() answer {
	if o.next == len(o.answers) {
		return nothing
	}
	return o.answers[o.next]
}

// take notes that the next answer was given.
func (o *owed) take() {
	if o.next++; o.next == len(o.answers) {
		o.answers, o.next = o.answers[:0], 0
	}
}
