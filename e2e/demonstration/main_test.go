// Package demonstration tests the page on which one breaks things (examples/demo): each of its
// buttons, and the six incidents of docs/start.md.
package demonstration

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/e2e/browser"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(browser.Suite{M: m}) }
