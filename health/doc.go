// Package health answers the probes of a supervisor, such as Kubernetes', for a replica that has
// leases, elections or jobs:
//
//	h := health.New(q, e, s) // a Quorum, an Elector, a Scheduler: those that there are
//	http.Handle("/livez", h)
//	http.Handle("/readyz", h)
//
// # What the answers mean
//
// Readiness never means leadership: a replica that waits to lead is ready. Otherwise a rollout
// would wait for a second leader, and a Service would never have more than one pod.
//
// Liveness never depends on the nodes: no restart of a replica brings a node back, and a replica
// that is restarted forgets what it knew of the nodes. /livez answers 200 for as long as the
// process can answer at all, unless a part is given with [Live].
//
// Readiness depends on the nodes mainly at the start of a replica:
//
//   - A replica is not ready before a quorum of nodes has voted for it, so a rollout stops at a
//     build with a wrong URL, password or permission.
//   - Nodes in quarantine count as voting, because a quarantine passes by itself and no replica can
//     end it. So a rollout goes on when the fleet is new or was restarted as a whole.
//   - A replica for which a quorum has voted stays ready when nodes fail later. They fail for all
//     replicas alike, and a Service without pods helps no client. The report says "degraded", and a
//     line is logged.
//   - A replica that is refused because other processes of the prefix use other nodes, or that has
//     found such processes, is not ready, even if it was before: two leases on a key may be live.
//   - A replica whose clock is wrong (redlock.ClockError) stays ready if it was ready: the servers'
//     clocks may be the wrong ones, for all replicas alike. A replica that starts with a wrong
//     clock is not ready.
//   - A replica is not ready if its election or its jobs do not run, if its lead function runs on
//     beyond its term, if its Quorum is closed, or if it shuts down.
//
// A replica cannot learn from a node in quarantine whether it belongs to that node. So let a
// replica be ready for longer than a quarantine before the next one is replaced: minReadySeconds.
//
// docs/operations.md has manifests, and the probes' settings.
package health
