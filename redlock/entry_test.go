package redlock

import "context"

// Enter has a process say that it uses its nodes, as the first lease has it do.
func Enter(q *Quorum) { q.roster.Enter(context.Background()) }

// Entered has it do so, and reports whether it counts.
func Entered(q *Quorum) bool {
	Enter(q)
	return q.roster.Admitted()
}
