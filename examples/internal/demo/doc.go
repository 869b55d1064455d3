// Package demo is the demonstration: replicas of a service on a quorum of nodes, which the reader
// of a page kills, freezes and partitions, while a ledger looks for what must never happen: a tick
// that runs twice, or two leases that two replicas could rely on at once.
//
// It knows neither HTTP nor processes. Config.Launch starts replicas, as processes or as instances
// of a WebAssembly module, and the page hears from it in messages and tells it orders, which
// protocol.go describes: Demo.Since has the messages, Demo.Do takes an order. So there is one page
// for both.
//
// Every replica reaches every node over a link, which Demo.Serve forwards, so that it can be cut.
// The replicas write to a store that checks their fencing tokens; link 0 leads to it.
package demo
