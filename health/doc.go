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
// would wait for a second leader, and no Service had more than one pod.
//
// Liveness never depends on the nodes: no restart brings a node back, and one that is restarted
// forgets what it knew of them. /livez answers 200 for as long as the process can answer at all,
// unless a part is given with [Live].
//
// Readiness depends on the nodes once:
//
//   - A replica is not ready before a quorum of nodes has voted for it, so a rollout stops at a
//     build with a wrong URL, password or right.
//   - Nodes that are in quarantine count as if they voted, because that passes by itself and no
//     replica can do anything about it. So neither a new fleet nor one that was restarted as a
//     whole holds a rollout up.
//   - A replica for which a quorum has voted stays ready when nodes fail later. They fail for all
//     replicas alike, and a Service without pods helps nobody. The report says "degraded", and a
//     line is logged.
//   - A replica that is refused because other processes of the prefix use other nodes, or that has
//     found such processes, is not ready, whatever was before: two leases on a key may be live.
//   - A replica whose clock is wrong (redlock.ClockError) stays ready if it was: the servers'
//     clocks may be what is wrong, for all replicas alike. One that begins with a wrong clock is
//     not.
//   - A replica is not ready either whose election or jobs do not run, whose lead function runs on
//     beyond its term, whose Quorum is closed, or that shuts down.
//
// Nobody can ask a node in quarantine whether this process belongs to it. So let a replica be
// ready for longer than a quarantine before the next one is replaced: minReadySeconds.
//
// docs/operations.md has manifests, and the probes' settings.
package health
