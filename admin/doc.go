// Package admin shows and steers what replicas do that share jobs: from a replica, or from any
// other process that reaches the nodes.
//
//	c, err := admin.New(q, admin.WithActor("ann"))
//	...
//	job := admin.Job("nightly-report")
//	p, err := c.Pause(ctx, job, admin.PauseOptions{Reason: "the database moves"})
//	...
//	err = c.Wait(ctx, "nightly-report") // for a run that had begun
//	...
//	err = c.Resume(ctx, job, "done")
//
// A pause is a promise: when Pause returns nil, no replica begins a tick of the job any more, see
// [Client.Pause]. What is read is information, and may be out of date when it arrives.
//
// Whoever may write to the nodes may give orders. The name of an actor is for logs, and no
// evidence.
package admin
