package cluster_test

import (
	"testing"

	"github.com/tenure-dev/tenure/tools/torture/torturetest"
)

func TestMain(m *testing.M) { torturetest.Main(m, nil) }
