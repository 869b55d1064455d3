package orders

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

// Anybody who may publish can say anything. What a taker is asked for is an order that is not over,
// and it can be answered.
func FuzzTaker(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"id":"i","kind":"run_now","target":"job","by":"ann","until":7999999999999}`, `{"v":9,"id":"i","kind":"x","until":7999999999999,"more":{}}`,
		`{"v":1,"id":"i","kind":"resign","until":1}`, `{"v":1,"id":"i","kind":"resign","until":7999999999999,"result":"done"}`, "", "null", "\xff", "{",
		`{"v":1,"id":"` + strings.Repeat(`\u0001`, 64) + `","kind":"` + strings.Repeat("\u65e5", 90) + `","target":"` + strings.Repeat("<", 900) + `","until":7999999999999}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var asked []bulletin.Order
		taker := &Taker{Logger: slog.New(slog.DiscardHandler), busy: make(map[string]bool), ctx: t.Context(), cancel: func() {}, unhear: func() {}}
		taker.Accept = func(o bulletin.Order) (func(context.Context) bulletin.Order, bool) {
			asked = append(asked, o)
			return func(context.Context) bulletin.Order { return bulletin.Order{} }, len(asked) > 1
		}
		for range 3 {
			taker.hear(bulletin.Entry{Text: text})
		}
		taker.Close()
		require.Empty(t, taker.busy)
		for _, o := range asked {
			require.NotEmpty(t, o.ID)
			require.NotEmpty(t, o.Kind)
			require.Empty(t, o.Result)
			require.True(t, utf8.ValidString(o.ID+o.Kind+o.Target+o.By+o.Why+o.Detail))
			require.LessOrEqual(t, time.Duration(o.Within)*time.Millisecond, time.Hour)
			require.LessOrEqual(t, len(claimKey(o.ID)), redlock.MaxKeyLength)

			o.Result, o.Detail = bulletin.Refused, strings.Repeat("\x01", 256)
			o.Run = &bulletin.Run{By: o.Detail}
			e, ok := o.Entry()
			require.True(t, ok)
			said, ok := bulletin.Parse[bulletin.Order](e.Text)
			require.True(t, ok)
			require.Equal(t, o.ID, said.ID)
			require.Equal(t, bulletin.Refused, said.Result)
		}
	})
}
