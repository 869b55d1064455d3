package quietlog

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDefaultPassesWarningsOnly(t *testing.T) {
	var out bytes.Buffer
	old := slog.Default()
	t.Cleanup(func() { slog.SetDefault(old) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))

	l := Default().With("a", 1).WithGroup("g")
	l.Info("quiet")
	require.Empty(t, out.String())
	l.Warn("loud", "b", 2)
	require.Contains(t, out.String(), "level=WARN msg=loud a=1 g.b=2")
}
