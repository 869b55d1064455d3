package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTargets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "replicas.json")
	for range 2 { // a file that is there is replaced
		require.NoError(t, writeTargets(path, map[string]string{"b": "127.0.0.1:2", "a": "0.0.0.0:1", "c": "[::]:3"}))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var list []target
	require.NoError(t, json.Unmarshal(text, &list))
	require.Equal(t, []target{
		{Targets: []string{"127.0.0.1:1"}, Labels: map[string]string{"instance": "a"}},
		{Targets: []string{"127.0.0.1:2"}, Labels: map[string]string{"instance": "b"}},
		{Targets: []string{"127.0.0.1:3"}, Labels: map[string]string{"instance": "c"}},
	}, list)
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing temporary is left")
}

func TestTargetsThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, writeTargets(filepath.Join(file, "replicas.json"), nil), "-targets: ")
}

func TestLeaseNames(t *testing.T) {
	require.Equal(t, "invoice", leaseName("invoice/17"))
	require.Equal(t, "stock", leaseName("stock"))
}
