package cluster_test

import (
	"testing"

	"github.com/tenure-dev/tenure/tools/harness/harnesstest"
)

func TestMain(m *testing.M) { harnesstest.Main(m, nil) }
