package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

func sample() *board {
	b := newBoard(&row{name: "pair", title: "a b", columns: []column{{Name: "p50 us"}, {Name: "x floor", Of: "p50 us", To: rival.Floor}}})
	b.absent(rival.Redislock, "no such thing")
	for _, v := range []float64{10, 20, 40} {
		b.add(rival.Tenure, "p50 us", v)
	}
	b.add(rival.Floor, "p50 us", 10)
	b.add(rival.Floor, "p50 us", 10)
	b.add(rival.Floor, "p50 us", 16)
	return b
}

func TestBoard(t *testing.T) {
	b := sample()
	b.finish()
	var w strings.Builder
	boards{b}.markdown(&w)
	require.Equal(t, "### pair: a b\n"+
		"| | servers | p50 us | x floor |\n"+
		"| --- | --- | ---: | ---: |\n"+
		"| floor | 5 | 10 (10..16) | 1 |\n"+
		"| Tenure | 5 | 20 (10..40) | 2 (1..2.5) |\n"+
		"\nNo redislock: no such thing.\n\n", w.String())
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.98: "0.98", 0.1234: "0.123", 1.104: "1.1", 1.5: "1.5", 12.34: "12.3", 20: "20", 100: "100", 1234.5: "1234", 50700: "50700", -3: "-3",
	} {
		require.Equal(t, want, number(v))
	}
	require.Equal(t, "-", spread(nil, true))
	require.Equal(t, "3", spread([]float64{3, 3}, true))
	require.Equal(t, "3", spread([]float64{2, 3, 4}, false))
}

func TestForeign(t *testing.T) {
	text := func(share float64) string {
		b := sample()
		b.foreign = share
		b.finish()
		return (&report{boards: []*board{b}}).markdown()
	}
	require.Contains(t, text(0.0314), "Other processes took at most 3.1 % of the processors' time in a row.\n\n")
	require.NotContains(t, text(0.0314), "do not quote")
	require.Contains(t, text(0.25), "**Other processes took 25.0 % of the processors' time in pair, more than 10 %: do not quote it.**\n\n| |")
}
