package runtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// tenure is the built program.
var tenure string

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		work(role)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // or programs that are started here ignored it, under nohup
	if signal.Ignored(syscall.SIGINT) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT) // nor this one, which a shell has its background jobs ignore
	}
	dir, err := os.MkdirTemp("", "runtest-")
	if err != nil {
		panic(err)
	}
	tenure = filepath.Join(dir, "tenure")
	build := exec.Command("go", "build", "-o", tenure, "github.com/tenure-dev/tenure/cmd/tenure")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "runtest: cannot build tenure:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}
