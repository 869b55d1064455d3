package wire

func releaseKeys(c *Call, to []string) []string {
	to = append(to, c.Keys.Lock)
	if c.Last != nil {
		return append(to, c.Keys.Record(), c.Last.Board.journal(c.Last.Entry.Journal))
	}
	return withRecord(c, to)
}

func releaseArgs(c *Call, _ *Set, to []string) []string {
	to = append(to, c.Lock, c.Turn, c.Channel)
	if c.isPaired() && c.leaving() == "" {
		return to
	}
	to = append(to, c.Keep, c.leaving())
	switch {
	case c.Sequence != nil:
		to = append(append(to, c.Record.String()), c.Sequence...)
	case c.Last != nil:
		to = append(append(to, Keep.String()), make([]string, onceWords)...)
	}
	if c.Last != nil {
		to = c.Last.Board.entryArgs(&c.Last.Entry, to)
	}
	return to
}

// leaving is the member of the queue that a release takes out of it, and an acquisition when it is
// granted.
func (c *Call) leaving() string {
	if c.Stays {
		return ""
	}
	return c.Member
}

// releaseAnswer reads what release.lua returns.
func releaseAnswer(_ *Call, msg reply) (Answer, error) {
	answer, err := msg.AsInt64()
	if err != nil || answer < 0 || answer > 3 {
		return Answer{}, msg.unexpected()
	}
	a := Answer{Verdict: Refused, Unwritten: answer >= 2}
	if answer%2 == 1 {
		a.Verdict = OK
	}
	return a, nil
}
