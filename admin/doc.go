// Package admin shows and steers the jobs, elections and runs of replicas. A Client works in a
// replica, and in any other process that reaches the nodes.
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
// [Client.Pause]. Answers of the methods that read are information only, and may be out of date
// when they arrive.
//
// Any process that may write to the nodes may give orders. The name of an actor is for logs; it
// proves nothing.
package admin
