// Package moving has the tests of docs/moving.md: a service moves from another lock to leases,
// replica by replica, and at no moment two replicas do the work.
package moving
