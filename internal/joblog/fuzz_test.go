package joblog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/joblog"
)

// fullest is a record with each field as long as it gets.
func fullest() joblog.Record {
	berlin := time.FixedZone("", 3600)
	long := time.Date(2026, time.December, 31, 23, 59, 59, 999_999_999, berlin)
	r := joblog.Record{
		Words: strings.Repeat("w", joblog.MaxWords), Since: long, Cursor: long, Queued: long, Next: long, Runs: 1 << 60,
		Run: joblog.Run{Tick: long, Attempt: 1 << 60, Why: joblog.Backfill, Token: 1 << 63, By: strings.Repeat("\x01", 256), Began: long, Ended: long,
			Outcome: joblog.CutShort, Took: 1 << 62},
		Again: joblog.Attempt{Tick: long, N: 1 << 60},
		OK:    joblog.Success{Tick: long, Ended: long},
		Fill:  joblog.Fill{From: long, To: long, Begun: 1 << 60},
	}
	for range 8 {
		r.Beside = append(r.Beside, joblog.Span{From: long, To: long})
	}
	return r
}

// Whatever a node has kept, a record that is read can be written, and all that is made of it.
func FuzzParse(f *testing.F) {
	for _, r := range []joblog.Record{{}, fullest()} {
		text, err := r.Encode()
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`1{"since":"0000-01-01T00:00:00Z","cursor":"9999-12-31T23:59:59Z","next":"0001-01-01T00:00:00Z","beside":[{}],"run":{"began":"2026-03-02T00:00:00Z"}}`))
	f.Add([]byte(`1{"fill":{"from":"0000-01-01T00:00:00Z","to":"9999-12-31T23:59:59Z"},"again":{"tick":"2026-03-02T00:00:00Z","n":9000000000000000000}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := joblog.Parse(text, at("1h"))
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err == nil {
			back, err := joblog.Parse(again, at("1h"))
			require.NoError(t, err)
			require.Equal(t, r, back)
		}
		p := joblog.Policy{CatchUp: joblog.CatchUpAll, Window: time.Hour, Delivery: joblog.AtLeastOnce, Overlap: joblog.OverlapQueue}
		for _, d := range []joblog.Definition{every(time.Minute), chained(time.Minute, true), times("1h")} {
			r, table := joblog.Adopt(r, d, at("1h"))
			v := joblog.Owed(r, table, p, at("2h"))
			r = joblog.Settle(r, table, v, at("2h"))
			r = joblog.Begin(r, table, p, v, joblog.Grant{At: at("2h")})
			r, _ = joblog.End(r, table, p, joblog.Ending{Outcome: joblog.Succeeded, At: at("3h"), Took: time.Hour})
			_, _ = r.Backfill(at("0h"), at("1h"), at("2h"))
		}
	})
}
