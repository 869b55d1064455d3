package clock

import (
	"testing"

	"go.uber.org/goleak"
)

// The runtime of js/wasm has a goroutine that takes events.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("runtime.handleEvent"))
}
