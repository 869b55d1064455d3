package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The numbers were counted by hand. The comments in the sample say what each rule meets there.
func TestSample(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "sample.md"))
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, "./testdata/sample", false))
	require.Equal(t, string(want), out.String())
}

func TestPackagesThatCannotBeMeasured(t *testing.T) {
	var out strings.Builder
	require.ErrorContains(t, run(t.Context(), &out, "./testdata/missing", false), "missing")
	require.ErrorContains(t, run(t.Context(), &out, "./testdata/sample/...", false), "3 packages")
	require.ErrorContains(t, run(t.Context(), &out, "./testdata/sample", true), "TryAcquire meets no function")
	require.Empty(t, out.String())
}

// graphOf makes a graph of arrows such as "ab".
func graphOf(arrows string) graph {
	g := make(graph)
	for _, arrow := range strings.Fields(arrows) {
		for _, name := range arrow {
			if g[string(name)] == nil {
				g[string(name)] = make(map[string]bool)
			}
		}
		g[arrow[:1]][arrow[1:]] = true
	}
	return g
}

func TestGraphs(t *testing.T) {
	for _, test := range []struct {
		arrows    string
		cycle, up int
	}{
		{"", 0, 0},
		{"ab bc ac", 0, 0},
		{"ab ba", 2, 1},
		{"ab bc cd da", 4, 1},
		{"ab ba bc cd de ec", 3, 2},             // two cycles, with an arrow from one to the other
		{"ab ba bc cb ca ac", 3, 3},             // each uses each
		{"xa ab bc ca ay yz", 3, 1},             // names above and below a cycle
		{"ba ca da ea ab", 2, 1},                // only one of the users of a is used by it
		{"ac ad bc be cd db dc ea", 5, 2},       // a file that uses none of the rest goes first
		{"ab ac bc be ca da dc ed", 5, 2},       // and so does one that none of the rest uses
		{"ac ad bc ca db dc", 4, 1},             // of equal ones the first by the alphabet
		{"ab ac ad ba ca da be ce de ea", 5, 3}, // a has most arrows, and more to it than from it
	} {
		g := graphOf(test.arrows)
		require.Equal(t, test.cycle, g.largestCycle(), test.arrows)
		require.Equal(t, test.up, g.up(), test.arrows)
		require.Len(t, strings.Fields(test.arrows), g.arrows(), test.arrows)
	}
}

func TestLines(t *testing.T) {
	for text, want := range map[string]int{
		"":                                       0,
		"package p\n":                            1,
		"// Comment.\n\npackage p // Comment.\n": 1,
		"package p\n\n/* Two\nlines. */\n":       1,
		"package p\n/* Before. */ var x int\n":   2,
		"package p\nvar x = `a\n\n// b`\n":       4,
		"package p\nfunc f() {\n}\n":             3,
		"package p\nfunc f() {\n} // Comment.\n": 3,
		"package p\nvar x = 1 +\n// Comment.\n2": 3,
		"package p\nvar x = 1 // x\n/* y\n*/\n":  2,
	} {
		require.Equal(t, want, goLines([]byte(text)), text)
	}
	require.Equal(t, 2, luaLines("-- a\n\nlocal x -- b\n  -- c\n\treturn x"))
}

func TestLayers(t *testing.T) {
	parts := []*shape{
		{name: "a", below: []string{"b", "d"}},
		{name: "b", below: []string{"d", "e"}},
		{name: "c", below: []string{"e"}},
		{name: "d", below: []string{"e"}},
		{name: "e"},
	}
	require.Equal(t, "a > b > c, d > e", layers(parts))
}

func TestMetFunctions(t *testing.T) {
	const report = `m/p/a.go:3:	*T.f	100.0%
m/p/a.go:9:	g	0.0%
m/p/internal/q/b.go:1:	h	0.1%
m/p/internal/q/c.go:1:	i	50.0%
m/p/internal/q/c.go:7:	j	10.0%
m/pp/main.go:1:	main	50.0%
total	(statements)	50.0%
`
	met := metFunctions(report, "m/p")
	require.Equal(t, []string{"m/p/a.go:3", "m/p/internal/q/b.go:1", "m/p/internal/q/c.go:1", "m/p/internal/q/c.go:7"}, met)
	require.Equal(t, spots{1, 1}, metIn("m/p", met))
	require.Equal(t, spots{3, 2}, metIn("m/p/internal/q", met))
}

// The call begins in acquire.go, and its script is beside another one. Nothing of the way before it
// counts, nor of the release behind it.
func TestAcquire(t *testing.T) {
	const redlock = "github.com/tenure-dev/tenure/redlock"
	met, err := runAcquire(t.Context(), redlock)
	require.NoError(t, err)
	in := func(file string) bool {
		return slices.ContainsFunc(met, func(f string) bool { return strings.HasPrefix(f, redlock+file+":") })
	}
	require.True(t, in("/acquire.go"))
	require.True(t, in("/internal/wire/acquire.go"))
	require.False(t, in("/option.go"))
	require.False(t, in("/internal/wire/release.go"))
}
