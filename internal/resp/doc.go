// Package resp guards a client against invalid replies of a Valkey server.
//
// A client has to trust what it reads: a length, before it has the bytes; and the order of replies,
// each of which answers the oldest open command. If a server breaks this, valkey-go panics, or
// allocates as much as it is told to, and a panic in one of its goroutines ends the process. Guard
// parses both directions, and ends the connection with an *Error before the client has read enough
// to act on it.
//
// It passes less than RESP allows: only what a Valkey server sends to this client, and only what
// guard and client parse in the same way. It refuses
//
//   - replies and confirmations of subscriptions that the client did not ask for;
//   - lengths that are negative, not numbers, or more than a reply may have;
//   - a reply that would take more than a mebibyte of memory, or is nested too deeply;
//   - types that do not exist, and types that no server sends here: attributes, texts and lists
//     without a length, pushes inside of another element;
//   - answers of the wrong kind to the few commands whose answers valkey-go reads itself;
//   - a client that asks for RESP2, subscribes to more than one channel with a command, or ends a
//     subscription.
//
// It passes on whole messages only, and allocates nothing per message.
package resp
