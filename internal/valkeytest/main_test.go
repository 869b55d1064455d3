package valkeytest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

var _ redlocktest.Faults = (*valkeytest.Node)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
