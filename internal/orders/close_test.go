package orders

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
)

// An order that comes while Close waits for others is begun no more.
func TestNothingIsBegunAfterClose(t *testing.T) {
	e, ok := bulletin.Order{ID: "id", Kind: bulletin.RunNow, Target: "job", By: "ann", Within: 1}.Entry()
	require.True(t, ok)
	began := false
	taker := &Taker{Logger: slog.New(slog.DiscardHandler), busy: make(map[string]bool)}
	taker.ctx, taker.cancel = context.WithCancel(t.Context())
	taker.unhear = func() { taker.hear(e) }
	taker.Accept = func(bulletin.Order) (func(context.Context) bulletin.Order, bool) {
		return func(context.Context) bulletin.Order { began = true; return bulletin.Order{} }, true
	}
	taker.Close()
	require.False(t, began)
}
