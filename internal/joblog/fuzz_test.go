package joblog

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Fullest is a record with each field as long as it gets.
func Fullest() Record {
	berlin := time.FixedZone("", 3600)
	long := time.Date(2026, time.December, 31, 23, 59, 59, 999_999_999, berlin)
	r := Record{
		Words: strings.Repeat("w", MaxWords), Since: long, Cursor: long, Queued: long, Next: long, Runs: 1 << 60,
		Run: Run{Tick: long, Attempt: 1 << 60, Why: Backfill, Token: 1 << 63, By: strings.Repeat("\x01", 256), Began: long, Ended: long,
			Outcome: CutShort, Took: 1 << 62},
		Again: Attempt{Tick: long, N: 1 << 60},
		OK:    Success{Tick: long, Ended: long},
		Fill:  Fill{From: long, To: long, Begun: 1 << 60},
	}
	for range 8 {
		r.Beside = append(r.Beside, Span{From: long, To: long})
	}
	return r
}

// at is an hour of the day on which the tests' tables begin.
func at(hour int) time.Time { return time.Date(2026, time.March, 2, hour, 0, 0, 0, time.UTC) }

// minutely is a table with a due time in each minute, once has one, and chain follows its runs.
type (
	minutely struct{ since time.Time }
	once     struct{ minutely }
	chain    struct{ minutely }
)

func (m minutely) From() time.Time              { return m.since }
func (minutely) Next(after time.Time) time.Time { return after.Truncate(time.Minute).Add(time.Minute) }

func (once) Next(after time.Time) time.Time {
	if after.Before(at(1)) {
		return at(1)
	}
	return time.Time{}
}

func (c chain) Next(time.Time) time.Time     { return c.since.Add(time.Minute) }
func (chain) Follow(run time.Time) time.Time { return run.Add(time.Minute) }
func (chain) FromEnd() bool                  { return true }

// Whatever a node has kept, a record that is read can be written, and all that is made of it.
func FuzzParse(f *testing.F) {
	for _, r := range []Record{{}, Fullest()} {
		text, err := r.Encode()
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`1{"since":"0000-01-01T00:00:00Z","cursor":"9999-12-31T23:59:59Z","next":"0001-01-01T00:00:00Z","beside":[{}],"run":{"began":"2026-03-02T00:00:00Z"}}`))
	f.Add([]byte(`1{"fill":{"from":"0000-01-01T00:00:00Z","to":"9999-12-31T23:59:59Z"},"again":{"tick":"2026-03-02T00:00:00Z","n":9000000000000000000}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Parse(text, at(1))
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err == nil {
			back, err := Parse(again, at(1))
			require.NoError(t, err)
			require.Equal(t, r, back)
		}
		p := Policy{CatchUp: CatchUpAll, Window: time.Hour, Delivery: AtLeastOnce, Overlap: OverlapQueue}
		for _, table := range []func(since time.Time) Table{
			func(since time.Time) Table { return minutely{since} },
			func(since time.Time) Table { return chain{minutely{since}} },
			func(time.Time) Table { return once{} },
		} {
			r, table := Adopt(r, Definition{Words: "d", Table: table}, at(1))
			v := Owed(r, table, p, at(2))
			r = Settle(r, table, v, at(2))
			r = Begin(r, table, p, v, Grant{At: at(2)})
			r, _ = End(r, table, p, Ending{Outcome: Succeeded, At: at(3), Took: time.Hour})
			_, _ = r.Backfill(at(0), at(1), at(2))
		}
	})
}
