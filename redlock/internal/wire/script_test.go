package wire

import (
	"io/fs"
	"path"
	"regexp"

	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/bridge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Field: PXAT from the client's wall clock. Expiry on the server is relative, always.
func TestTrap09ExpiryIsRelative(t *testing.T) {
	for _, s := range Scripts() {
		require.NotContains(t, strings.ToUpper(s.text), "PXAT")
		require.NotContains(t, strings.ToUpper(s.text), "EXAT")
		require.NotContains(t, strings.ToUpper(s.text), "EXPIREAT")
	}
	require.Contains(t, table[Acquire].script.text, "redis.call('SET', KEYS[1], lock, 'PX', ARGV[2])")
}

// Comments cost no server anything.
func TestScriptsAreSentWithoutComments(t *testing.T) {
	for _, s := range Scripts() {
		require.NotContains(t, s.text, "\n--")
		require.NotContains(t, s.text, "include")
	}
}

// A script of another package is told for which process it is, behind all else, and is one text for
// all of them.
func TestScriptOfAnotherPackage(t *testing.T) {
	guest := &Call{Op: GuestReading, Guest: &bridge.Call{Script: bridge.NewScript("-- a comment\nreturn {process}\n"), Args: []string{"one"}}}
	require.Equal(t, "local process = ARGV[#ARGV]\nARGV[#ARGV] = nil\nreturn {process}\n", scriptOf(guest).text)
	require.Same(t, scriptOf(guest), scriptOf(guest))
	require.Contains(t, Scripts(), scriptOf(guest))
	require.Equal(t, []string{"one", "id"}, guestArgs(guest, &Target{Process: "id"}, nil))
	require.Equal(t, []string{"one", ""}, guestArgs(guest, nil, nil), "the place is there without one")
}

func TestServerTimeIsBounded(t *testing.T) {
	for _, bad := range [][2]int64{{-1, 0}, {1 << 62, 0}, {0, -1}, {0, 1_000_000}} {
		_, err := ServerTime(bad[0], bad[1])
		require.Error(t, err)
	}
	got, err := ServerTime(1_780_000_000, 5)
	require.NoError(t, err)
	require.Equal(t, time.Unix(1_780_000_000, 5000), time.Unix(0, int64(got)))
}

// Each script is Lua, as it is sent. Servers run Lua 5.1, which is what the parser reads.
func TestScriptsAreLua(t *testing.T) {
	scripts := make(map[string]string)
	for _, name := range scriptNames(t) {
		scripts[name] = load(name).text
	}
	for name, text := range scripts {
		_, err := parse.Parse(strings.NewReader(text), name)
		require.NoError(t, err, text)
	}
	_, err := parse.Parse(strings.NewReader(newScript("return {").text), "broken")
	require.Error(t, err)
}

// scriptNames are the files of this package, without those of lib.
func scriptNames(t *testing.T) (names []string) {
	files, err := fs.Glob(sources, "*.lua")
	require.NoError(t, err)
	for _, file := range files {
		names = append(names, strings.TrimSuffix(path.Base(file), ".lua"))
	}
	require.Greater(t, len(names), 8)
	return names
}

// A name that a script uses is its own, or one of those that a server gives it: else it would be a
// global variable, which a server refuses when it comes to that line, and not before.
func TestScriptsUseNoGlobals(t *testing.T) {
	for _, name := range scriptNames(t) {
		require.Empty(t, globals(t, load(name).text), name)
	}
	require.Equal(t, []string{"typo"}, globals(t, "local function f(x) return x, typo end return f(1)"))
	require.Equal(t, []string{"typo"}, globals(t, "local x = 1 typo = x return redis.call('GET', KEYS[1])"))
}

var given = regexp.MustCompile(`^(redis|KEYS|ARGV|string|table|math|type|tonumber|tostring|ipairs|pcall|unpack)$`)

// globals are the names in a text that are neither given nor local to some part of it.
func globals(t *testing.T, text string) (found []string) {
	chunk, err := parse.Parse(strings.NewReader(text), "text")
	require.NoError(t, err)
	compiled, err := lua.Compile(chunk, "text")
	require.NoError(t, err)
	var walk func(f *lua.FunctionProto)
	walk = func(f *lua.FunctionProto) {
		for _, code := range f.Code {
			const opcode, constant = 26, 1<<18 - 1
			if op := int(code >> opcode); op == lua.OP_GETGLOBAL || op == lua.OP_SETGLOBAL {
				if name := f.Constants[code&constant].String(); !given.MatchString(name) {
					found = append(found, name)
				}
			}
		}
		for _, inner := range f.FunctionPrototypes {
			walk(inner)
		}
	}
	walk(compiled)
	return found
}
