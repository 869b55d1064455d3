package valkeytest_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

var _ redlocktest.Faults = (*valkeytest.Node)(nil)

// victimVariable makes the test binary start servers and come to a bad end.
const victimVariable = "VALKEYTEST_VICTIM"

func TestMain(m *testing.M) {
	if end := os.Getenv(victimVariable); end != "" {
		victim(end)
	}
	goleak.VerifyTestMain(m)
}

// victim starts a running and a stopped server, prints their pids and never
// returns.
func victim(end string) {
	f, err := valkeytest.New(2)
	if err != nil {
		panic(err)
	}
	running, frozen := f.Node(0), f.Node(1)
	if err := frozen.Freeze(); err != nil {
		panic(err)
	}
	fmt.Println(running.Pid(), frozen.Pid())
	if end == "panic" {
		go panic("the victim panics")
	}
	select {}
}
