// Package demonstration tests the page on which one breaks things: each of its buttons, with real
// processes (examples/quickstart -web) and in the browser alone (examples/demo).
package demonstration

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/e2e/browser"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(browser.Suite{M: m}) }
