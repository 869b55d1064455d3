package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	c, err := parseFlags(nil, "")
	require.NoError(t, err)
	require.Equal(t, &config{replicas: 3, ttl: 3 * time.Second, listen: "127.0.0.1", metricsPort: 9464}, c)
	require.Equal(t, "127.0.0.1:9466", c.address(2))

	c, err = parseFlags([]string{"-replica", "x", "-listen", "0.0.0.0", "-metrics-port", "0"}, "valkey://a, valkey://b,")
	require.NoError(t, err)
	require.Equal(t, []string{"valkey://a", "valkey://b"}, c.nodes)
	require.Equal(t, "0.0.0.0:0", c.address(0))

	c, err = parseFlags([]string{"-nodes", "valkey://c"}, "valkey://a")
	require.NoError(t, err)
	require.Equal(t, []string{"valkey://c"}, c.nodes, "the flag wins")
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	for text, args := range map[string][]string{
		`unexpected argument "now"`:               {"now"},
		"-replicas 0 is not between 1 and 26":     {"-replicas", "0"},
		"-ttl 900ms is below the minimum of 1s":   {"-ttl", "900ms"},
		"-duration -1s is negative":               {"-duration", "-1s"},
		"leaves no valid port":                    {"-metrics-port", "65534"},
		"-listen is empty":                        {"-listen", ""},
		"-kill-leader-after 1s is below":          {"-kill-leader-after", "1s"},
		"-restart-node-after 10s is below 11s":    {"-restart-node-after", "10s"},
		"-restart-node-after 15s is below 17.2s":  {"-restart-node-after", "15s", "-ttl", "10s"},
		"restarts nodes inside the process":       {"-restart-node-after", "1m", "-nodes", "valkey://a"},
		"-replica needs -nodes":                   {"-replica", "x"},
		"-targets and -kill-leader-after are for": {"-replica", "x", "-nodes", "valkey://a", "-targets", "f"},
		"invalid value":                           {"-duration", "soon"},
	} {
		_, err := parseFlags(args, "")
		require.ErrorContains(t, err, text)
	}
}
