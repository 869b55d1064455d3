package gocronx

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// If this fails, gocron was updated to a version that keeps what its options set elsewhere. Look at
// internalJob, scheduler, executor and addOrUpdateJob in its sources; correct the paths and types
// of jobFields and schedulerFields, and Version; and run the tests of this package, which read each
// option and run jobs with the new version. If a Reader's NewJob hangs, gocron has begun to need
// its goroutine after Shutdown.
func TestGocronHasTheFieldsThatAreRead(t *testing.T) {
	require.NoError(t, Check())
}

func TestOtherGocronIsRefused(t *testing.T) {
	_, err := newLayout(reflect.TypeFor[struct{ parentCtx int }](), reflect.TypeFor[jobFields]())
	require.ErrorContains(t, err, ".limitRunsTo.limit of type uint")
	require.ErrorContains(t, err, "use gocron "+Version+" (go get github.com/go-co-op/gocron/v2@"+Version+")")
}
