package wire

func releaseArgs(c *Call, _ *Target, to []string) []string {
	to = append(to, c.Lock, c.Turn, c.Channel)
	if c.isPaired() {
		return to
	}
	return append(to, c.Keep, c.Member)
}
