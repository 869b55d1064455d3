package place_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/bench/internal/rival"
)

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func TestSlow(t *testing.T) {
	const delay = 30 * time.Millisecond
	s, err := place.Start(3)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	links, err := s.Slow(delay)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, links.Close()) })
	r, err := rival.Floor.Open(rival.Config{URLs: links.URLs(), TTL: time.Minute})
	require.NoError(t, err)
	began := time.Now()
	_, err = r.Try(context.Background(), "k")
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), delay)
	require.NoError(t, r.Close())
}
