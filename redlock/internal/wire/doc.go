// Package wire encodes what a Quorum sends to a server and decodes the answers. It has the names of
// keys, the Lua scripts, and one table of operations.
//
// A Call is one operation, of any kind. Group says how many calls share a command, Encode makes the
// command, and Decode reads its answer, one Result for each call. The package does no I/O, knows
// neither nodes nor rounds, and decides nothing: the caller decides what an answer means for a
// lease.
//
// Each Lua script stands beside the Go file that fills in its arguments and reads its answer:
// acquire.lua beside acquire.go. Parts that several scripts share are in lib. A new kind of
// operation is a row in the table, a script, and a Go file for both.
//
// Lua numbers are doubles, and tostring prints large ones in scientific notation on the server, so
// scripts format counters with '%.0f'. Microseconds since 1970 stay below 2^53 until the year 2255.
package wire
