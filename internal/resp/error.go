package resp

// Error is the reason why a connection was ended: its other end is not a Valkey server, or is
// faulty.
type Error struct {
	// What says what was wrong, such as "a reply to no command".
	What string
	// Said is the text of an error that the server sent without a command, or as the answer to the
	// first command, before the connection ended; empty for none. Servers that are full or
	// protected send such errors.
	Said string
}

func (e *Error) Error() string {
	if e.Said != "" {
		return e.What + ": " + e.Said
	}
	return e.What
}
