package resp

// Error is why a connection was ended: its other end is no Valkey server, or not in order.
type Error struct {
	// What was wrong, such as "a reply to no command".
	What string
	// Said is the text of an error that the server sent without having been asked, before it ended
	// the connection, or to HELLO; empty for none. Servers that are full or protected do so.
	Said string
}

func (e *Error) Error() string {
	if e.Said != "" {
		return e.What + ": " + e.Said
	}
	return e.What
}
