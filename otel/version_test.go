package tenureotel

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// The build information of a test binary is this checkout's, so what is read of others is tested
// with made-up ones.
func TestVersionIsThatOfTheModule(t *testing.T) {
	const path = "github.com/tenure-dev/tenure"
	other := &debug.Module{Path: "example.com/other", Version: "v9.9.9"}
	for _, test := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"the main module", debug.BuildInfo{Main: debug.Module{Path: path, Version: "v1.2.3"}, Deps: []*debug.Module{other}}, "v1.2.3"},
		{"a dependency", debug.BuildInfo{Main: *other, Deps: []*debug.Module{other, {Path: path, Version: "v1.2.3"}}}, "v1.2.3"},
		{"a dependency replaced by another version", debug.BuildInfo{Main: *other, Deps: []*debug.Module{
			{Path: path, Version: "v1.2.3", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"}}}}, "v1.2.4"},
		{"a dependency replaced by a directory", debug.BuildInfo{Main: *other, Deps: []*debug.Module{
			{Path: path, Version: "v1.2.3", Replace: &debug.Module{Path: "../tenure"}}}}, "unknown"},
		{"the main module of a checkout", debug.BuildInfo{Main: debug.Module{Path: path}}, "unknown"},
		{"not there", debug.BuildInfo{Main: *other, Deps: []*debug.Module{other}}, "unknown"},
		{"no modules", debug.BuildInfo{}, "unknown"},
	} {
		require.Equal(t, test.want, versionIn(&test.info, "unknown"), test.name)
	}
	require.NotEmpty(t, Version())
}
