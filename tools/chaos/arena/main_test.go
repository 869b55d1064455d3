package arena_test

import (
	"testing"

	"go.uber.org/goleak"
)

// toxiproxy leaves the goroutines of a connection behind whose peer went away while bytes were on their way to it:
// nobody receives what they have to pass on.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}
