package tenureotel

import (
	"cmp"
	"runtime/debug"
)

// ScopeName is the instrumentation scope of all spans and metrics.
const ScopeName = "github.com/tenure-dev/tenure/otel"

// SchemaURL is the schema of the scope: the version of OpenTelemetry's semantic conventions that
// its standard names follow.
const SchemaURL = "https://opentelemetry.io/schemas/1.43.0"

const modulePath = "github.com/tenure-dev/tenure"

// Version returns the version of this module in the running program, as the Go command recorded it.
// It is "(devel)" for a build of a checkout, and for a program without build information.
func Version() string {
	const unknown = "(devel)"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	return versionIn(info, unknown)
}

func versionIn(info *debug.BuildInfo, unknown string) string {
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath {
			return cmp.Or(cmp.Or(m.Replace, m).Version, unknown)
		}
	}
	return unknown
}
