package replica_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/soak/replica"
)

// What a replica does is tested with the whole program.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClockIsAhead(t *testing.T) {
	fake := clockwork.NewFakeClock()
	clock := replica.Clock{Clock: fake, Ahead: time.Second}
	require.Equal(t, fake.Now().Add(time.Second), clock.Now())
	require.Equal(t, time.Second, clock.Since(fake.Now()))
	require.Equal(t, -time.Second, clock.Until(fake.Now()))
}
