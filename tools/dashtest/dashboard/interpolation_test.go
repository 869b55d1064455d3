package dashboard_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/dashtest/dashboard"
)

func TestExpand(t *testing.T) {
	grafana := dashboard.Interpolation{
		Range: 30 * time.Minute, Interval: 5 * time.Second, Scrape: 5 * time.Second,
		Values: map[string][]string{"job": {"tenure"}, "instance": {"10.0.0.1:9464", `a"b\c`}, "none": nil},
	}
	for _, tc := range []struct{ expr, want string }{
		{`rate(x[$__rate_interval])`, `rate(x[20s])`},
		{`x[$__range:$__interval] + $__range_s`, `x[1800s:5s] + 1800`},
		{`x{job=~"$job"}`, `x{job=~"tenure"}`},
		{`x{job=~"${job}"} + y{job="${job:regex}"} + [[job]]`, `x{job=~"tenure"} + y{job="tenure"} + tenure`},
		{`x{instance=~"$instance"}`, `x{instance=~"(10\\.0\\.0\\.1:9464|a"b\\\\c)"}`},
		{`x{y=~"$none"}`, `x{y=~"()"}`},
	} {
		got, err := grafana.Expand(tc.expr)
		require.NoError(t, err)
		assert.Equal(t, tc.want, got)
	}
	_, err := grafana.Expand(`x{a=~"$jobs"} + $__ranges`)
	assert.ErrorContains(t, err, "nobody sets $jobs, $__ranges")
}

func TestRateInterval(t *testing.T) {
	for _, tc := range []struct{ interval, scrape, want time.Duration }{
		{time.Second, time.Second, 4 * time.Second},
		{time.Minute, 15 * time.Second, 75 * time.Second},
	} {
		assert.Equal(t, tc.want, dashboard.Interpolation{Interval: tc.interval, Scrape: tc.scrape}.RateInterval())
	}
	assert.Equal(t, "1500ms", dashboard.Duration(1500*time.Millisecond))
}

func TestLabelValues(t *testing.T) {
	selector, label, err := dashboard.LabelValues(`label_values(up{job=~"$job", a="b"}, instance)`)
	require.NoError(t, err)
	assert.Equal(t, []string{`up{job=~"$job", a="b"}`, "instance"}, []string{selector, label})
	selector, label, err = dashboard.LabelValues(`label_values(job)`)
	require.NoError(t, err)
	assert.Equal(t, []string{"", "job"}, []string{selector, label})
	_, _, err = dashboard.LabelValues(`query_result(up)`)
	assert.ErrorContains(t, err, "is not label_values")
}
