package runtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// settings are those that the units may have, by section: a misspelled one is ignored by systemd.
var settings = map[string][]string{
	"Unit": {"Description", "Documentation", "Wants", "After"},
	"Service": {"Type", "EnvironmentFile", "ExecStart", "Restart", "RestartSec", "KillMode", "TimeoutStopSec",
		"SuccessExitStatus", "LimitRTPRIO", "DynamicUser"},
	"Timer":   {"OnCalendar", "RandomizedDelaySec", "AccuracySec"},
	"Install": {"WantedBy"},
}

// unit is a file of deploy/systemd: values by section and name.
func unit(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	values, section := map[string]string{}, ""
	for l := range strings.Lines(string(text)) {
		l = strings.TrimSuffix(l, "\n")
		switch {
		case l == "" || l[0] == '#':
		case l[0] == '[':
			section = strings.Trim(l, "[]")
			require.Contains(t, settings, section)
		default:
			name, value, ok := strings.Cut(l, "=")
			require.True(t, ok && value != "", l)
			require.Contains(t, settings[section], name)
			require.NotContains(t, values, section+"."+name)
			values[section+"."+name] = value
		}
	}
	return values
}

// The units are read strictly, by systemd itself where it is there, and their command lines are
// run.
func TestUnits(t *testing.T) {
	files, err := filepath.Glob("../../../../deploy/systemd/*.*")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return filepath.Ext(f) == ".md" })
	require.Len(t, files, 3)
	fleet, dir := valkeytest.Start(t, 3), t.TempDir()
	for _, file := range files {
		values := unit(t, file)
		line, isService := values["Service.ExecStart"]
		require.Equal(t, filepath.Ext(file) == ".service", isService)
		if isService {
			require.Equal(t, "mixed", values["Service.KillMode"], "tenure passes SIGTERM on")
			args := strings.Fields(strings.NewReplacer("%i", "unit", "%H", "host").Replace(line))
			require.Equal(t, "/usr/local/bin/tenure", args[0])
			require.Equal(t, "/usr/local/libexec/tenure/unit", args[len(args)-1])
			args[len(args)-1] = "true"
			if args[1] == "elect" {
				args = slices.Insert(args, 2, "--once") // else it would not end
			}
			code, _, stderr := run(t, fleet, nil, args[1:]...)
			require.Zero(t, code, stderr)
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		copied := filepath.Join(dir, filepath.Base(file))
		require.NoError(t, os.WriteFile(copied, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/tenure", tenure)), 0o644))
	}
	systemd, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // the strict reading above has to do
	}
	for _, file := range files {
		cmd := exec.Command(systemd, "verify", "--man=no", "./"+filepath.Base(file))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Empty(t, string(out))
	}
}
