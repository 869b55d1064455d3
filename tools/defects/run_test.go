package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// door is a module with one promise, and tests of which one keeps it.
var door = map[string]string{
	"go.mod":       "module door\n\ngo 1.26.0\n",
	"door.go":      "package door\n\nfunc opens(key int) bool { return key == 7 }\n",
	"door_test.go": doorTest,
}

const doorTest = `package door

import "testing"

func TestRightKey(t *testing.T) {
	if !opens(7) {
		t.Fatal("shut")
	}
}

func TestWrongKey(t *testing.T) {
	if opens(8) {
		panic("open")
	}
}

func TestOtherDoor(t *testing.T) { t.Skip("there is none") }
`

func TestJudge(t *testing.T) {
	root := t.TempDir()
	for name, text := range door {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	r := &runner{root, t.TempDir()}
	require.NoError(t, r.baseline(t.Context(), "./.", []string{"TestRightKey", "TestWrongKey"}))
	for _, name := range []string{"TestOtherDoor", "TestNoDoor"} {
		require.ErrorContains(t, r.baseline(t.Context(), "./.", []string{"TestRightKey", name}), name+" was not run")
	}
	for name, c := range map[string]struct {
		old, new, tests string
		by, err         string
	}{
		"caught":           {"key == 7", "key == 8", "TestRightKey", "TestRightKey", ""},
		"a panic":          {"key == 7", "true", "TestRightKey|TestWrongKey", "TestWrongKey", ""},
		"survived":         {"key == 7", "true", "TestRightKey", "", ""},
		"gone":             {"key == 6", "true", "TestRightKey", "", "door.go has 0 times, and must have once: key == 6"},
		"twice":            {"key", "lock", "TestRightKey", "", "door.go has 2 times"},
		"does not compile": {"key == 7", "key", "TestRightKey", "", "cannot use key"},
		"no such test":     {"key == 7", "true", "TestNoDoor", "", "has no test TestNoDoor"},
	} {
		t.Run(name, func(t *testing.T) {
			by, err := r.judge(t.Context(), &defect{name: name, edits: []edit{{"door.go", c.old, c.new}}, pkg: "./.", tests: c.tests})
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.by, by)
		})
	}
	text, err := os.ReadFile(filepath.Join(root, "door.go"))
	require.NoError(t, err)
	require.Equal(t, door["door.go"], string(text), "no file is changed")
}
