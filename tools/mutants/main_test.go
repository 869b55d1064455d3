package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFlags(t *testing.T) {
	o, err := parseFlags(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 2, o.parallel)
	require.Equal(t, 2*time.Minute, o.tool.timeout)
	require.True(t, o.pattern.MatchString("anything"))
	require.False(t, o.list || o.chaos || o.try != "" || o.markdown != "")

	o, err = parseFlags(strings.Fields("-run ^a -parallel 7 -timeout 3s -chaos -try TestX -list"), io.Discard)
	require.NoError(t, err)
	require.Equal(t, 7, o.parallel)
	require.Equal(t, 3*time.Second, o.tool.timeout)
	require.True(t, o.pattern.MatchString("ab"))
	require.False(t, o.pattern.MatchString("ba"))
	require.Equal(t, "TestX", o.try)
	require.True(t, o.list && o.chaos)
}

func TestBadFlagsAreNamed(t *testing.T) {
	for _, test := range []struct{ args, says string }{
		{"-run (", "-run"},
		{"gate-off", `"gate-off"`},
		{"-parallel 0", "-parallel 0"},
		{"-timeout 0s", "-timeout 0s"},
		{"-markdown nowhere/x -try TestX", "-markdown"},
		{"-run nothing-is-called-that", "-list"},
		{"-unknown", "unknown"},
	} {
		t.Run(test.args, func(t *testing.T) {
			var out, errs strings.Builder
			code := mutantsMain(t.Context(), strings.Fields(test.args), []Mutant{{Name: "gate-off"}}, &out, &errs)
			require.Equal(t, exitTrouble, code)
			require.Contains(t, errs.String(), test.says)
			require.Empty(t, out.String())
		})
	}
}

func TestHelpAndListRunNothing(t *testing.T) {
	list := []Mutant{{Name: "first", Rule: "One."}, {Name: "second", Rule: "Two."}}
	var out, errs strings.Builder
	require.Equal(t, exitCaught, mutantsMain(t.Context(), []string{"-help"}, list, &out, &errs))
	require.Contains(t, errs.String(), "-markdown")
	require.Empty(t, out.String())
	require.Equal(t, exitCaught, mutantsMain(t.Context(), []string{"-list", "-run", "^s"}, list, &out, io.Discard))
	require.Equal(t, []string{"second", "Two."}, strings.Fields(out.String()))
}

// What shows nothing is worse than what survived: it looks like a rule that is tested.
func TestConclude(t *testing.T) {
	m := &Mutant{Name: "m"}
	caught := &verdict{mutant: m, caughtBy: []string{"TestX"}}
	survived := &verdict{mutant: m}
	rotted := &verdict{mutant: m, err: errRotted}
	half := &verdict{mutant: m, caughtBy: []string{"TestX"}, err: errors.New("one check of two showed nothing")}
	for _, test := range []struct {
		verdicts []*verdict
		code     int
		says     string
	}{
		{[]*verdict{caught, caught}, 0, "2 mutants: 2 caught, 0 survived, 0 show nothing\n"},
		{[]*verdict{caught, survived}, 1, "2 mutants: 1 caught, 1 survived, 0 show nothing\n"},
		{[]*verdict{rotted, caught, survived}, 2, "3 mutants: 1 caught, 1 survived, 1 show nothing\n"},
		{[]*verdict{half}, 2, "1 mutants: 0 caught, 0 survived, 1 show nothing\n"},
	} {
		var out strings.Builder
		require.Equal(t, test.code, conclude(&out, test.verdicts), test.says)
		require.Equal(t, test.says, out.String())
	}
}
