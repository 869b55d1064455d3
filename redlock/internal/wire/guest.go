package wire

func guestKeys(c *Call, to []string) []string { return append(to, c.Guest.Keys...) }

func guestArgs(c *Call, target *Target, to []string) []string {
	process := ""
	if target != nil {
		process = target.Process
	}
	return append(append(to, c.Guest.Args...), process)
}

// guestAnswer reads what a script of another package returns: a list of texts.
func guestAnswer(_ *Call, msg reply) (Answer, error) {
	parts, err := msg.ToArray()
	if err != nil {
		return Answer{}, msg.unexpected()
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		if texts[i], err = part.ToString(); err != nil {
			return Answer{}, msg.unexpected()
		}
	}
	return Answer{Verdict: OK}.With(More{Guest: texts}), nil
}
