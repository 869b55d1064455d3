// Package valkeytest runs real valkey-server processes for tests, with the same
// faults as redlocktest's in-process nodes: SIGKILL, SIGSTOP, SIGCONT and
// restarts with or without data. On Linux their wall clocks can be moved too, see
// [WithClock] and [WithAge].
//
//	fleet := valkeytest.Start(t, 5)
//	q, err := redlock.Open(fleet.URLs())
//
// The server is found in PATH or named by the environment variable
// TENURE_VALKEY_SERVER. A test that needs it fails without it; it is never
// skipped.
//
// # The servers end with the test
//
// Start closes its fleet when the test ends. If the process panics, times out or is killed, nothing
// is cleaned up. Then Linux kills the servers, stopped ones too: every server asks for SIGKILL on
// its parent's death (PR_SET_PDEATHSIG). On other systems the servers survive, and have to be
// killed by hand.
//
// # What it does not do
//
// Servers share one machine, one disk and, without [WithClock], one clock, and
// the network between them and the test is loopback: it neither loses nor delays
// anything.
package valkeytest
