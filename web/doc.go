// Package web is an [http.Handler] that shows the whole cluster, from any process that reaches the
// nodes: who leads, what ran where and how it ended, what is late and why, and which node does not
// vote as which replica sees it.
//
//	a, err := admin.New(q)
//	...
//	h, err := web.New(a)
//	...
//	defer h.Close()
//	mux.Handle("/tenure/", http.StripPrefix("/tenure", h))
//
// It is eight pages, the same as JSON under api/v1/, and server-sent events. The pages are rendered
// here, need nothing from elsewhere, and can be read without script.
//
// # Who may see it
//
// READING IS NOT AUTHORIZED HERE: whoever reaches the Handler sees names of jobs, replicas, hosts
// and nodes. Wrap it in what the rest of the program has for that. Without [WithActions] nothing
// can be changed with it. With it, each order is authorized by the function that it is given, takes
// a POST request with a reason that does not come from another site, and is logged with who gave
// it.
//
// # What it costs
//
// All open pages share what is read, and the one subscription of [admin.Client.Watch]: the nodes
// pay for one page, and for none half a minute after the last was looked at. A page answers from
// what is there, with its age, and waits less than a second for what was never read.
package web
