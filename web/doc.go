// Package web is an [http.Handler] that shows the whole cluster, in any process that reaches the
// nodes: leaders, past runs and their outcomes, late jobs and the reasons, and which nodes do not
// vote, as each replica sees them.
//
//	a, err := admin.New(q)
//	...
//	h, err := web.New(a)
//	...
//	defer h.Close()
//	mux.Handle("/tenure/", http.StripPrefix("/tenure", h))
//
// It has eight pages, the same content as JSON under api/v1/, and server-sent events. The pages are
// rendered here, load nothing from elsewhere, and can be read without script.
//
// # Who may see it
//
// READING IS NOT AUTHORIZED HERE: everyone who reaches the Handler sees names of jobs, replicas,
// hosts and nodes. Wrap it in the authorization that the rest of the program uses. Without
// [WithActions] the Handler changes nothing. With it, an order needs a POST request with a reason,
// which must not come from another site. The function of WithActions authorizes each order and
// names the actor, and the order is logged with that name.
//
// # What it costs
//
// All open pages share one set of reads and one subscription of [admin.Client.Watch], so the nodes
// pay for one page. Half a minute after the last request the reads end. A page shows what was read
// last, with its age. It waits less than a second for data that was never read.
package web
