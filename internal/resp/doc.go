// Package resp guards a client against what comes over a connection to a Valkey server.
//
// A client has to believe what it reads: a length before the bytes that it announces, and that a
// reply is the answer to the oldest command without one. valkey-go panics, or allocates what it is
// told to, where a server says something else, and a panic in its goroutines ends the process.
// Guard reads along in both directions and ends the connection instead, with an *Error, before the
// client has seen enough to act on it.
//
// What it lets pass is narrower than RESP: what a Valkey server sends to this client, and what the
// client reads in the same way as the guard does. It refuses
//
//   - replies that nobody asked for, and confirmations of subscriptions that nobody asked for;
//   - lengths that are negative, no numbers, or more than a reply may have;
//   - a reply that would take more than a mebibyte of memory, or is nested too deeply;
//   - types that do not exist, and those that no server sends here: attributes, texts and lists
//     without a length, pushes inside of something;
//   - answers of the wrong kind to the few commands whose answers valkey-go reads itself;
//   - a client that asks for RESP2, or subscribes to more than one channel with a command.
//
// It passes on whole messages, and allocates nothing per message.
package resp
