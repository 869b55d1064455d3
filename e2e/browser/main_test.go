package browser_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/e2e/browser"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(browser.Suite{M: m}) }
