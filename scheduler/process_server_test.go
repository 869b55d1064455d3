package scheduler_test

import (
	"context"
	"fmt"

	"github.com/tenure-dev/tenure/scheduler"
)

// printer is the task of a process.
type printer struct{}

func (*printer) print(ctx context.Context) {
	run, _ := scheduler.RunFromContext(ctx)
	fmt.Println(run.Tick.Unix())
}
