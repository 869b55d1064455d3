package child_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/child"
)

// roleVariable makes the test binary another process.
const roleVariable = "CHILD_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "sleep":
		select {}
	case "parent":
		parent()
	case "talk":
		fmt.Print("one\ntwo\nhalf")
		os.Exit(3)
	case "work":
		fmt.Println("before")
		child.Work()
		fmt.Println("after")
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// parent starts a running and a frozen child, prints their ids and never returns.
func parent() {
	var pids []any
	for range 2 {
		cmd, err := child.Self(roleVariable + "=sleep")
		if err != nil {
			panic(err)
		}
		c, err := child.Start(cmd)
		if err != nil {
			panic(err)
		}
		pids = append(pids, c.Pid())
		if len(pids) == 2 {
			err = c.Freeze()
		}
		if err != nil {
			panic(err)
		}
	}
	fmt.Println(pids...)
	select {}
}
