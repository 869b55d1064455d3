package wire

func releaseArgs(c *Call, _ *Target, to []string) []string {
	to = append(to, c.Lock, c.Turn, c.Channel)
	if c.isPaired() {
		return to
	}
	return append(to, c.Keep, c.leaving())
}

// leaving is the member of the queue that a release takes out of it, and an acquisition when it is
// granted.
func (c *Call) leaving() string {
	if c.Stays {
		return ""
	}
	return c.Member
}
