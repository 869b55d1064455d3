// Package moving has the tests of docs/moving.md: a service that moves from another lock to leases,
// replica by replica, and in which at no moment two replicas do the work.
package moving
