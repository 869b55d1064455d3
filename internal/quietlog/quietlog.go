// Package quietlog is the default logger of every package: the process's own, for warnings and worse only.
package quietlog

import (
	"context"
	"log/slog"
)

// Default returns a logger that passes warnings and errors on to slog.Default as it is now.
func Default() *slog.Logger { return slog.New(handler{slog.Default().Handler()}) }

type handler struct{ slog.Handler }

func (h handler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
