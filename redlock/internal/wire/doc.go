// Package wire is what a Quorum says to a server, and what it understands of the answers: the names
// of keys, the Lua scripts, and one table of commands.
//
// A Call is one operation on one key, whatever its kind. Group says how many calls share a command,
// Encode makes the command, and Decode reads its answer, one Result for each call. The package does
// no I/O, knows no node and no round, and decides nothing: what an answer means for a lease is the
// caller's.
//
// Each Lua text stands beside the Go that fills in its words and reads its answer: acquire.lua
// beside acquire.go. What several scripts share is in lib. A sixth kind of operation is a row in
// the table, a script, and a file for both.
//
// Numbers in scripts: Lua numbers are doubles, and tostring prints large ones in scientific
// notation on the server, so counters are formatted with '%.0f'. Microseconds since 1970 stay below
// 2^53 until the year 2255.
package wire
