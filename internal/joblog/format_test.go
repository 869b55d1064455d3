package joblog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

func TestFullestRecordFits(t *testing.T) {
	r := fullest()
	text, err := r.Encode()
	require.NoError(t, err)
	require.Equal(t, byte('1'), text[0])
	require.Less(t, len(text), joblog.MaxSize)
	back, err := joblog.Parse(text)
	require.NoError(t, err)
	require.Equal(t, r.Beside[7].To.UTC(), back.Beside[7].To.UTC())
	require.Equal(t, r.Run.By, back.Run.By)

	r.Words = strings.Repeat("w", joblog.MaxSize)
	_, err = r.Encode()
	require.ErrorContains(t, err, "longer than 4096")
}

// The text is what the nodes of a running fleet keep: a change needs another version.
func TestRecordsText(t *testing.T) {
	l := newLife(t, every(time.Hour), "0s", joblog.Policy{CatchUp: joblog.CatchUpAll, Window: time.Hour, Delivery: joblog.AtLeastOnce})
	require.Equal(t, `1{"def":"every 1h0m0s","since":"2026-03-02T00:00:00Z"}`, string(l.kept))
	l.begin("1h0m0.25s")
	require.Equal(t, `1{"def":"every 1h0m0s","since":"2026-03-02T00:00:00Z",`+
		`"run":{"tick":"2026-03-02T01:00:00Z","attempt":1,"why":"on_time","token":1,"by":"replica","began":"2026-03-02T01:00:00.25Z"},`+
		`"again":{"tick":"2026-03-02T01:00:00Z","n":1},"runs":1}`, string(l.kept))
	l.end("1h30m0.25s", joblog.Succeeded, 30*time.Minute)
	require.Equal(t, `1{"def":"every 1h0m0s","since":"2026-03-02T00:00:00Z","cursor":"2026-03-02T01:00:00Z",`+
		`"run":{"tick":"2026-03-02T01:00:00Z","attempt":1,"why":"on_time","token":1,"by":"replica","began":"2026-03-02T01:00:00.25Z",`+
		`"ended":"2026-03-02T01:30:00.25Z","outcome":"ok","took":1800000000000},`+
		`"runs":1,"ok":{"tick":"2026-03-02T01:00:00Z","ended":"2026-03-02T01:30:00.25Z"}}`, string(l.kept))
}

func TestTextsThatAreNoRecord(t *testing.T) {
	for name, text := range map[string]string{
		"another version": "2{}",
		"no version":      "{}",
		"no fields":       "1",
		"cut off":         `1{"def":"every`,
		"unknown field":   `1{"defs":"x"}`,
		"trailing bytes":  `1{}{}`,
		"trailing junk":   `1{}]`,
		"no time":         `1{"since":"yesterday"}`,
		"negative count":  `1{"runs":-1}`,
		"too many spans":  `1{"beside":[` + strings.Repeat(`{"from":"2026-03-02T00:00:00Z","to":"2026-03-02T00:00:00Z"},`, 8) + `{"from":"2026-03-02T00:00:00Z","to":"2026-03-02T00:00:00Z"}]}`,
		"too long":        `1{"def":"` + strings.Repeat("w", joblog.MaxSize) + `"}`,
		"a number of now": "1 1764150000000",
	} {
		t.Run(name, func(t *testing.T) {
			r, err := joblog.Parse([]byte(text))
			require.ErrorContains(t, err, "joblog: ")
			require.Zero(t, r)
		})
	}
	r, err := joblog.Parse(nil)
	require.NoError(t, err, "a job that nobody has seen")
	require.Zero(t, r)
}

// Records that are drawn come back as they were.
func TestRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		r.Words = rapid.StringN(0, 200, joblog.MaxWords).Draw(t, "words")
		text, err := r.Encode()
		require.NoError(t, err)
		back, err := joblog.Parse(text)
		require.NoError(t, err)
		require.Equal(t, r, back)
	})
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
		r, err := joblog.Parse(text)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err == nil {
			back, err := joblog.Parse(again)
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
			_, _ = r.Backfill(at("0s"), at("1h"), at("2h"))
		}
	})
}
