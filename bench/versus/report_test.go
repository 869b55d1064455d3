package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMarkdown(t *testing.T) {
	b := sample()
	b.finish()
	r := &report{machine: machine("8.0.1", time.Unix(0, 0)), boards: []*board{b}}
	for _, want := range []string{"1970-01-01 00:00 UTC", "Valkey 8.0.1", "GOMAXPROCS", "### pair: ", "bsm/redislock"} {
		require.Contains(t, r.markdown(), want)
	}
}
