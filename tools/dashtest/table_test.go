package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/dashtest/prometheus"
	"github.com/tenure-dev/tenure/tools/dashtest/verdict"
)

func TestTable(t *testing.T) {
	var out bytes.Buffer
	problems := table(&out, []verdict.Row{
		{Origin: "a panel", Expr: "sum(\n  x\n)", Series: []prometheus.Series{{Labels: map[string]string{"a": "b"}, Points: []prometheus.Point{{Value: 2}}}}},
		{Origin: "an alert", Expr: "y > 1", Note: "quiet"},
		{Origin: "another", Expr: "z", Problem: "there is no metric z"},
	})
	assert.Equal(t, 1, problems)
	for _, want := range []string{"ok          1  a panel", "{a=b} 2", "sum( x )", "(quiet)", "FAILED", "PROBLEM: there is no metric z"} {
		assert.Contains(t, out.String(), want)
	}
}

func TestWithoutPrometheus(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out bytes.Buffer
	_, err := run(context.Background(), &out, options{root: root, observe: time.Minute})
	require.ErrorIs(t, err, prometheus.ErrMissing)
}
