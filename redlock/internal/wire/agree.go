package wire

import "strconv"

func agreeArgs(c *Call, _ *Target, to []string) []string {
	return append(to, c.Lock, strconv.FormatUint(c.Token, 10), c.Keys.Slot)
}
