package tenureotel

import "runtime/debug"

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
	version := ""
	if info.Main.Path == modulePath {
		version = info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path != modulePath {
			continue
		}
		version = dep.Version
		if dep.Replace != nil {
			version = dep.Replace.Version
		}
	}
	if version == "" {
		return unknown
	}
	return version
}
