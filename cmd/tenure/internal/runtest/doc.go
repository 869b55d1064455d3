// Package runtest tests `tenure run` and `tenure elect` from outside: the built program, its
// watchdog and its commands are processes, and the nodes are real servers.
//
// The commands are this package's test binary in the role of a worker. Many times a second a worker
// writes that it lives, and the deadline as it knows it, to a log that all workers of a lease
// share. The log shows a worker that outlives the lease, and two workers at a time.
package runtest
