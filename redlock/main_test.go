package redlock_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// waiters is how many tests run at once. Those on real servers spend their time waiting for
// expiries, not computing, so there may be more of them than processors.
const waiters = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", waiters); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
