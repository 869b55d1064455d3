package wire

import "github.com/valkey-io/valkey-go"

// GuestOps has the operations of scripts of other packages: by whether they are gated, and whether
// they write nothing.
var GuestOps = map[[2]bool]Op{{true, true}: GuestReading, {true, false}: Guest, {false, true}: ReadingAnywhere, {false, false}: GuestAnywhere}

func guestKeys(c *Call, to []string) []string { return append(to, c.Guest.Keys...) }

func guestArgs(c *Call, target *Target, to []string) []string {
	to = append(to, c.Guest.Args...)
	switch {
	case !c.Guest.Script.Gated:
		return to
	case target == nil:
		return append(to, "")
	default:
		return append(to, target.Process)
	}
}

// guestAnswer reads what a script of another package returns: a list of texts.
func guestAnswer(_ *Call, msg valkey.ValkeyMessage, r reading) Answer {
	parts := r.list(msg)
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = r.text(part)
	}
	return Answer{Verdict: OK}.With(More{Guest: texts})
}
