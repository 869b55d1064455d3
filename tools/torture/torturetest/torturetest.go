// Package torturetest is for tests of programs with clusters and client processes.
package torturetest

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/tools/torture/clients"
)

// Main is the TestMain of a package whose tests start clusters, and clients that begin so; nil if
// they start none.
func Main(m *testing.M, begin func(*clients.Process) (func() error, error)) {
	if os.Getenv(clients.Variable) != "" {
		os.Exit(clients.Main(begin))
	}
	// toxiproxy leaves the goroutines of a connection behind whose peer went away while bytes were
	// on their way to it: nobody receives what they have to pass on.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}
