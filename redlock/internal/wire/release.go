package wire

func releaseArgs(c *Call, _ *Target, to []string) []string {
	to = append(to, c.Lock, c.Turn, c.Channel)
	if c.isPaired() {
		return to
	}
	return append(to, c.Keep, c.leaving())
}

// leaving returns the member that a release takes out of the queue, and an acquisition if it is
// granted; empty for none.
func (c *Call) leaving() string {
	if c.Stays {
		return ""
	}
	return c.Member
}
