// Package redlocktest runs Valkey nodes inside the test process, with the
// faults that a quorum has to survive: a node can be killed, frozen, slowed
// down and restarted with or without its data. It needs no server and no
// Docker, and it starts within milliseconds.
//
//	fleet := redlocktest.Start(t, 3)
//	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption))
//
// [Start] and [New] listen on loopback TCP. [StartPipes] and [NewPipes] need no
// network; the former works inside a [testing/synctest] bubble, where expiry, timeouts and
// [Node.SetDelay] run on the bubble's fake clock: an hour-long outage takes
// microseconds and ends at the same instant in every run.
//
//	synctest.Test(t, func(t *testing.T) {
//		fleet := redlocktest.StartPipes(t, 3)
//		// open clients, freeze, sleep, thaw, assert, close the clients
//	})
//
// # What this is not
//
// The nodes are [miniredis], not Valkey. A test that passes here is NO PROOF
// that it passes on a server:
//
//   - Expiry is lazy and exact: a key is gone at its deadline because the next
//     command looks. Expiry events, client-side caching and its invalidation
//     messages, eviction and maxmemory do not exist.
//   - Lua is gopher-lua. Numbers print differently (tostring of a large integer
//     gives 1.78e+15 on a server and all its digits here), and the order of
//     pairs() differs.
//   - INFO is mostly missing. It knows what a restart gate asks for (run_id,
//     uptime, role, loading, eviction policy) and nothing about commands or
//     latency. A node's first process claims an uptime of two days, so that such a
//     gate lets it vote when the test starts; later ones report their own. INFO
//     and SCRIPT LOAD inside MULTI are answered at once instead of queued.
//   - CONFIG, ACL, passwords, TLS, CLIENT TRACKING, inline commands,
//     replication, cluster mode, AOF and RDB do not exist; data kept across
//     [Node.Restart] is kept exactly, which few persistence settings of a
//     server promise. A blocking command (BLPOP) that came while its node was
//     frozen holds up the commands that came after it.
//   - Commands of different connections run in parallel goroutines under one
//     lock. Nothing can be learned here about throughput or latency.
//
// Claims about a real server belong in a test against a real server.
//
// # Concurrency
//
// Every method is safe for concurrent use, except that nothing may be called
// from inside a bubble on a fleet that was started outside of it, or the other
// way round.
//
// [miniredis]: https://github.com/alicebob/miniredis
package redlocktest
