package joblog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/joblog"
)

func TestFullestRecordFits(t *testing.T) {
	r := joblog.Fullest()
	text, err := r.Encode()
	require.NoError(t, err)
	require.Equal(t, byte('1'), text[0])
	require.Less(t, len(text), joblog.MaxSize)
	back, err := joblog.Parse(text, at("9000h"))
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
		"settled ahead":   `1{"cursor":"2026-03-03T00:00:01Z"}`,
		"made ahead":      `1{"since":"2026-03-03T00:00:01Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r, err := joblog.Parse([]byte(text), midnight)
			require.ErrorContains(t, err, "joblog: ")
			require.Zero(t, r)
		})
	}
	r, err := joblog.Parse(nil, midnight)
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
		back, err := joblog.Parse(text, at("9000h"))
		require.NoError(t, err)
		require.Equal(t, r, back)
	})
}
