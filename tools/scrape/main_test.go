package scrape

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// update rewrites the golden file instead of comparing with it.
var update = flag.Bool("update", false, "rewrite the golden file in testdata")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
