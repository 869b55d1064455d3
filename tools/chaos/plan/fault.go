// Package plan decides which faults happen when. A seed determines all of it: kinds, targets, times
// and amounts.
package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/fault"
)

// The kinds of faults of clients.
const (
	KillClient   fault.Kind = "kill-client"   // SIGKILL, and a new process when the fault is over
	KillHolder   fault.Kind = "kill-holder"   // the same, of the client that holds a key
	FreezeClient fault.Kind = "freeze-client" // SIGSTOP, then SIGCONT
	FreezeHolder fault.Kind = "freeze-holder" // the same, of the client that holds a key
)

// Fault is one thing that happens.
type Fault struct {
	fault.Fault               // its kind, and what it does to servers and links
	At          time.Duration // from the start
	For         time.Duration // until it is put right; zero for what needs no putting right
	Client      int           // for KillClient and FreezeClient
	Key         int           // for KillHolder and FreezeHolder
	Part        string        // of which episode, if of any
}

// OnClient reports whether the fault strikes a client.
func (f Fault) OnClient() bool {
	switch f.Kind {
	case KillClient, KillHolder, FreezeClient, FreezeHolder:
		return true
	}
	return false
}

// Begins implements nemesis.Fault.
func (f Fault) Begins() time.Duration { return f.At }

// Targets implements nemesis.Fault: faults of a server do not overlap, nor do those of its links.
// Those of clients may.
func (f Fault) Targets() []string {
	what := "server"
	if f.Kind.OnLink() {
		what = "links"
	}
	var targets []string
	for _, n := range f.Nodes {
		targets = append(targets, fmt.Sprint(what, " ", n))
	}
	return targets
}

func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8.3fs  %-14s ", f.At.Seconds(), f.Kind)
	switch f.Kind {
	case KillClient, FreezeClient:
		fmt.Fprintf(&b, "client %d", f.Client)
	case KillHolder, FreezeHolder:
		fmt.Fprintf(&b, "holder of key %d", f.Key)
	default:
		b.WriteString("server")
		for _, n := range f.Nodes {
			fmt.Fprintf(&b, " %d", n+1)
		}
	}
	if f.Kind.OnLink() {
		fmt.Fprintf(&b, ", %s", f.Side)
	}
	if f.Amount != 0 {
		fmt.Fprintf(&b, ", by %s", f.Amount)
	}
	if f.Rate != 0 {
		fmt.Fprintf(&b, ", to %d KB/s", f.Rate)
	}
	if f.For != 0 {
		fmt.Fprintf(&b, ", for %s", f.For)
	}
	if f.Part != "" {
		fmt.Fprintf(&b, "  (%s)", f.Part)
	}
	return b.String()
}
