package crowd_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/crowd"
)

// victimVariable makes the test binary start a crowd and come to a bad end.
const victimVariable = "CROWD_VICTIM"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(crowd.Variable) != "":
		os.Exit(dummy())
	case os.Getenv(victimVariable) != "":
		victim()
	}
	goleak.VerifyTestMain(m)
}

// dummy is a client that does what its assignment's prefix says instead of anything else.
func dummy() int {
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return 1
	}
	var job client.Assignment
	if err := json.Unmarshal(line, &job); err != nil {
		return 1
	}
	if job.Prefix == "fails" {
		fmt.Fprintln(os.Stderr, "I fail.")
		return 3
	}
	fmt.Println(client.Ready)
	if job.Prefix == "deaf" {
		signal.Ignore(syscall.SIGHUP) // which an orphaned process group gets if one of it is stopped
		select {}
	}
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			return 4
		}
		switch command, argument, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case command == client.Settle && job.Prefix != "stubborn":
			fmt.Println(client.Settled)
		case command == "exit":
			return 5
		case command == "name":
			fmt.Println(argument, job.Name, job.Seed)
		case command == client.Stop && job.Prefix != "stubborn":
			return 0
		}
	}
}

// victim starts a crowd, one of it frozen, prints their process ids and never returns.
func victim() {
	dir, err := os.MkdirTemp("", "crowd-")
	if err != nil {
		panic(err)
	}
	c := crowd.New(2, func(int) client.Assignment { return client.Assignment{Journals: dir, Prefix: "deaf"} })
	for i := range 2 {
		if err := c.Start(i); err != nil {
			panic(err)
		}
	}
	c.Freeze(1)
	fmt.Println(c.Pid(0), c.Pid(1), dir)
	select {}
}
