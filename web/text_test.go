package web

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "שלום 名前 é": "שלום 名前 é", "a b": "a b", "a\nb\t\x00": "a␊b␉␀", "\x7f": "⟨U+007F⟩", "\u202egnp": "⟨U+202E⟩gnp",
		"a\u200bb": "a⟨U+200B⟩b", "\u00a0": "⟨U+00A0⟩", "👩\u200d🚀": "👩\u200d🚀", "\xff": "\uFFFD", "\xff\n": "\uFFFD␊", "\ufeff": "⟨U+FEFF⟩", "\U000e0041": "⟨U+E0041⟩",
		"": "", "❤\ufe0f": "❤\ufe0f", "\u3164": "⟨U+3164⟩", "a\u3164": "a⟨U+3164⟩", "\u2800": "⟨U+2800⟩", "\uffa0\u115f\u1160": "⟨U+FFA0⟩⟨U+115F⟩⟨U+1160⟩", "a\u034fb": "a⟨U+034F⟩b",
		"\u2065": "⟨U+2065⟩", "\U000e0fff": "⟨U+E0FFF⟩", "\u00ad": "⟨U+00AD⟩", "\U00016fe4": "⟨U+16FE4⟩", "\U0001d159": "⟨U+1D159⟩",
		"\x1b[31m": "␛[31m", "\u009b31m": "⟨U+009B⟩31m", "\u2028": "⟨U+2028⟩", "e\u0301": "e\u0301",
		// Nothing of these is seen.
		"\u200d": "⟨U+200D⟩", "\u200c\ufe0f": "⟨U+200C⟩⟨U+FE0F⟩", " ": "⟨U+0020⟩", " \u200d\n": "⟨U+0020⟩⟨U+200D⟩␊", "\U000e0100": "⟨U+E0100⟩", "\u180b": "⟨U+180B⟩",
	} {
		require.Equal(t, want, visible(text), "%q", text)
	}
	require.Equal(t, "poller", inSentence("poller"))
	require.Equal(t, "\u2068שלום\u2069", inSentence("שלום"))
	require.Equal(t, "“ a”", inSentence(" a"))
	require.Equal(t, 60, utf8.RuneCountInString(inSentence(strings.Repeat("x", 100))))
}

func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"", "a\u202eb", "\xff\x00", strings.Repeat("ü", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		is := visible(text)
		require.True(t, utf8.ValidString(is))
		require.Equal(t, is, visible(is), "it is visible")
		require.False(t, strings.ContainsFunc(is, view.Hidden))
		require.True(t, utf8.ValidString(inSentence(text)))
		schedulePhrase(text)
		require.NotContains(t, traceLink("https://tempo.example/{trace_id}", text), " ")
	})
}

func TestSchedulePhrase(t *testing.T) {
	for schedule, want := range map[string]string{
		"0 3 * * *": "every day at 03:00", "0 0 3 * * *": "every day at 03:00", "30 7 * * 1-5": "", "15 4 1 * *": "",
		"*/15 * * * *": "every 15 minutes", "* * * * *": "every minute", "*/10 * * * * *": "every 10 seconds", "* * * * * *": "every second", "0 * * * *": "every hour",
		"5 * * * *": "every hour at minute 5", "0 */6 * * *": "every 6 hours", "0 0 */12 * * *": "every 12 hours",
		"TZ=Europe/Berlin 0 3 * * *": "every day at 03:00", "CRON_TZ=UTC 0 3 * * *": "every day at 03:00",
		"every 1m0s": "every minute", "every 45s": "every 45 seconds", "every 1h30m0s": "every 90 minutes", "every 24h0m0s": "every day", "@every 5m": "every 5 minutes", "every 1.5s": "every 1.5s",
		"every 20s from completion": "every 20 seconds",
		// As written: said wrong, it would be worse than not said.
		"0 3 1 * 1": "", "0 3 1 1 *": "", "0 3 32 * *": "", "0 3 0 * *": "", "0 0 3 L * *": "", "61 * * * *": "", "*/0 * * * *": "", "0 3 * * 1#2": "", "0 3 * * 5-1": "", "0 3 * * 1,2": "", "": "", "every": "", "every x": "",
		"every -1m": "", "every 1 days at 01:00:00": "", "at 2026-01-01T00:00:00Z": "", "1-5 * * * *": "", "5 0 3 * * *": "", "@daily": "", "TZ=": "",
		"*/40 * * * *": "", "*/45 * * * * *": "", "0 */7 * * *": "", "*/5 9-17 * * *": "", "5 */5 * * * *": "", "5 */6 * * *": "",
	} {
		require.Equal(t, want, schedulePhrase(schedule), "%q", schedule)
	}
}

func TestTimes(t *testing.T) {
	require.True(t, view.At(time.UnixMilli(math.MaxInt64)).IsZero(), "no time of a calendar")
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	require.Equal(t, "03:00:00", view.At(now.Add(-9*time.Hour)).Clock(now))
	require.Equal(t, "23 Nov 12:00:00", view.At(now.Add(-24*time.Hour)).Clock(now))
	require.Equal(t, "2025-11-24 12:00:00", view.At(now.AddDate(-1, 0, 0)).Clock(now))
}

// Only what is an id of a trace is a link.
func TestTraceLink(t *testing.T) {
	const template = "https://tempo.example/trace/{trace_id}"
	require.Equal(t, "https://tempo.example/trace/4bf92f3577b34da6a3ce929d0e0e4736", traceLink(template, "4bf92f3577b34da6a3ce929d0e0e4736"))
	for _, id := range []string{"", "../x", "4bf9?x", "javascript:alert(1)", strings.Repeat("a", 65), "4bf9 ", "{trace_id}"} {
		require.Empty(t, traceLink(template, id), "%q", id)
	}
	require.Empty(t, traceLink("", "4bf9"))
}

// Nodes that refuse the user of this process say nothing of the cluster: what replicas say is told,
// and that nothing is granted if they say so.
func TestNodesOfWhoMayNotAsk(t *testing.T) {
	refused := redlock.NodeStatus{Node: "n", Reachable: true, Err: &redlock.ConditionError{Condition: redlock.ConditionNoPermission}}
	for want, seen := range map[string][]admin.Seen{
		"How many of the 3 nodes vote is not known: they refuse the user of this process.":    nil,
		"3 of 3 nodes vote, as replicas say: the user of this process may not ask the nodes.": {{Replica: "a", Votes: true}},
		"0 of 3 nodes vote, as replicas say, and 2 are needed: nothing is granted.":           {{Replica: "a"}},
	} {
		s := &snapshot{}
		for range 3 {
			s.nodes = append(s.nodes, view.NewNode(refused, seen, time.Now()))
		}
		require.Equal(t, want, sentence(s, attentionOf(s)))
		require.Equal(t, map[bool]string{false: "warn", true: "bad"}[strings.Contains(want, "nothing is granted")], attentionOf(s).level(0))
		require.Contains(t, drawNode(s.nodes[0]), "not known")
	}
}

// Names of replicas lose what they share, up to a hyphen, and never all.
func TestShared(t *testing.T) {
	for want, names := range map[string][]string{
		"billing-7c9f-": {"billing-7c9f-x2", "billing-7c9f-x4"}, "billing-": {"billing-7c-a", "billing-8d-b", "billing-7c-c"}, "": {"a", "b", "-"}, "a-": {"a-", "a-b"},
	} {
		require.Equal(t, want, shared(names), names)
	}
	require.Empty(t, shared([]string{"one-a"}))
	require.Contains(t, short("a-", "a-"), ">a-<")
}
