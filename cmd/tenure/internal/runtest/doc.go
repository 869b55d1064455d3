// Package runtest tests `tenure run` and `tenure elect` from outside: the built program, its
// watchdog and its commands are processes, and the nodes are real servers.
//
// The commands are this package's test binary in the role of a worker. Workers write down, many
// times a second, that they live and what they know of the deadline, in a log that all workers of a
// lease share: so a worker that outlives the lease, or two at a time, are seen there.
package runtest
