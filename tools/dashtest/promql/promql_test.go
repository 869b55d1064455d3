package promql_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tenure-dev/tenure/tools/dashtest/promql"
)

func TestSelectors(t *testing.T) {
	for _, tc := range []struct {
		expr string
		want []string
	}{
		{`up`, []string{`up`}},
		{`sum by (le, a) (rate(x_bucket{a="b", c=~"d|e"}[5m])) > 0.5`, []string{`x_bucket{a="b", c=~"d|e"}`}},
		{`sum(x) by (y)`, []string{`x`}},
		{`a{} / on (l) group_left (m) job:b:rate5m`, []string{`a`, `job:b:rate5m`}},
		{`(a unless a offset 20s or increase(a[20s]))`, []string{`a`}},
		{`max_over_time(timestamp(a <= time())[90s:1s])`, []string{`a`}},
		{`a{b="} c{d=\"e\"}"} # c`, []string{`a{b="} c{d=\"e\"}"}`}},
		{`{__name__="a"} and b @ end()`, []string{`{__name__="a"}`, `b`}},
		{`1e3 * vector(0x1f) == bool Inf`, nil},
		{`a{b!="", c!~"d"} and absent(e)`, []string{`a{b!="", c!~"d"}`, `e`}},
		{"topk(5, a)\n  # b\n  or c", []string{`a`, `c`}},
		{``, nil},
		{`a{b="c`, []string{`a`}},
	} {
		var got []string
		for _, s := range promql.Selectors(tc.expr) {
			got = append(got, s.String())
		}
		assert.Equal(t, tc.want, got, tc.expr)
	}
}

func TestWithout(t *testing.T) {
	s := promql.Selectors(`a{b="c", d="e"}`)[0]
	assert.Equal(t, `a{d="e"}`, s.Without(func(m promql.Matcher) bool { return m.Label == "b" }).String())
	assert.Equal(t, `a`, s.Without(func(promql.Matcher) bool { return true }).String())
}

func TestOperands(t *testing.T) {
	for _, tc := range []struct {
		expr string
		want []string
	}{
		{`a > 1`, []string{`a`}},
		{`(sum(a) == bool 1) and on (x, y) (b{c=">"} < 2)`, []string{`sum(a)`, `b{c=">"}`}},
		{`a == 0 or ((b unless on (j) c) > 3)`, []string{`a`, `b`, `c`}},
		{`(time() - a) > on (j) group_left () d`, []string{`time() - a`}},
		{`count(a > time()) != 1`, []string{`count(a > time())`}},
		{`a + (b > 1)`, []string{`a + (b > 1)`}},
		{"p10\n  < p50 / 3\n", []string{`p10`}},
		{`a`, []string{`a`}},
	} {
		assert.Equal(t, tc.want, promql.Operands(tc.expr), tc.expr)
	}
}
