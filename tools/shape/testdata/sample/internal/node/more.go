package node

func more() bool { return more() || Ask(0, 0) }
