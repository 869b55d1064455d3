// Package pages tests the pages of package web as people use them: in a real Chromium, on real
// servers, with replicas in processes of their own.
package pages

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/e2e/cluster"
)

func TestMain(m *testing.M) {
	cluster.Main()
	goleak.VerifyTestMain(browser.Suite{M: m})
}
