package resp

// owed are the answers that the server owes, in the order in which it has to give them.
type owed struct {
	runs []run // from first on
	next int   // the first of them

	resp3      bool // the client asked for RESP3: then lists are never pushes
	subscribed bool // it has subscribed to something
	leaving    bool // its last command was an UNSUBSCRIBE
}

// run is a number of answers of one kind.
type run struct {
	kind answer
	n    int
	some bool // of confirmations: not the first one
}

// answer is what a command is answered with.
type answer uint8

const (
	anything     answer = iota
	confirmation        // a push for each channel, or one error
	pushes              // pushes only, or an error that is not taken for a pong
	pong                // the answer to the PING that valkey-go sends behind each UNSUBSCRIBE
)

// add notes that a command was sent.
func (o *owed) add(kind answer, n int) {
	if last := len(o.runs) - 1; last >= o.next && kind != confirmation && o.runs[last].kind == kind {
		o.runs[last].n += n
		return
	}
	if o.next > 0 && len(o.runs) == cap(o.runs) {
		o.runs = o.runs[:copy(o.runs, o.runs[o.next:])]
		o.next = 0
	}
	o.runs = append(o.runs, run{kind: kind, n: n})
}

// first is what is owed next; nil for nothing.
func (o *owed) first() *run {
	if o.next == len(o.runs) {
		return nil
	}
	return &o.runs[o.next]
}

// take notes that one was given.
func (o *owed) take() {
	r := &o.runs[o.next]
	if r.some = true; r.n > 1 {
		r.n--
		return
	}
	o.drop()
}

// drop notes that there are no more of the first run.
func (o *owed) drop() {
	if o.next++; o.next == len(o.runs) {
		o.runs, o.next = o.runs[:0], 0
	}
}
