package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	c, err := parseFlags(nil, "")
	require.NoError(t, err)
	require.Equal(t, &config{mode: modeElector, duration: 20 * time.Second, ttl: 3 * time.Second, replicas: 3}, c)

	c, err = parseFlags([]string{"-mode", "locker", "-duration", "6s", "-ttl", "1s", "-replicas", "5"}, "valkey://a, valkey://b,")
	require.NoError(t, err)
	require.Equal(t, &config{mode: modeLocker, nodes: []string{"valkey://a", "valkey://b"}, duration: 6 * time.Second, ttl: time.Second, replicas: 5}, c)

	c, err = parseFlags([]string{"-nodes", "valkey://c"}, "valkey://a")
	require.NoError(t, err)
	require.Equal(t, []string{"valkey://c"}, c.nodes, "the flag wins")
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	for text, args := range map[string][]string{
		`unexpected argument "locker"`:          {"locker"},
		`-mode "both" is unknown`:               {"-mode", "both"},
		"-ttl 900ms is below the minimum of 1s": {"-ttl", "900ms"},
		"-replicas 1 is not between 2 and 26":   {"-replicas", "1"},
		"use at least 8.25s":                    {"-duration", "8s"},
		"invalid value":                         {"-duration", "soon"},
	} {
		_, err := parseFlags(args, "")
		require.ErrorContains(t, err, text)
	}
}
