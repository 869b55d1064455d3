package wire

func releaseKeys(c *Call, to []string) []string {
	to = append(to, c.Keys.Lock)
	if c.Last != nil {
		to = append(to, c.Last.Board.journal(c.Last.Entry.Journal))
	}
	return to
}

func releaseArgs(c *Call, _ *Target, to []string) []string {
	to = append(to, c.Lock, c.Turn, c.Channel)
	if c.isPaired() && c.leaving() == "" {
		return to
	}
	to = append(to, c.Keep, c.leaving())
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
