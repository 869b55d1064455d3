package supervise

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if IsWatchdog() {
		os.Exit(Watch())
	}
	goleak.VerifyTestMain(m)
}
