package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/resp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Field: PXAT from the client's wall clock. Expiry on the server is relative, always.
func TestTrap09ExpiryIsRelative(t *testing.T) {
	for _, s := range Scripts() {
		require.NotContains(t, strings.ToUpper(s.text), "PXAT")
		require.NotContains(t, strings.ToUpper(s.text), "EXAT")
		require.NotContains(t, strings.ToUpper(s.text), "EXPIREAT")
	}
	require.Contains(t, table[Acquire].script.text, "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])")
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
	require.Greater(t, len(names), 6)
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

// An error is the server's, of the connection, or of one that took too long.
func TestWhoseAnErrorIs(t *testing.T) {
	for _, test := range []struct {
		err             error
		server, timeout bool
	}{
		{fmt.Errorf("%w: 7", ErrUnexpected), true, false},
		{&Fault{Condition: Busy}, true, false},
		{fmt.Errorf("wrapped: %w", &Fault{Condition: Busy}), true, false},
		{&resp.Error{What: "a reply to no command", Said: "ERR max number of clients reached"}, false, false},
		{context.DeadlineExceeded, false, true},
		{io.EOF, false, false},
	} {
		require.Equal(t, test.server, IsServerError(test.err), "%v", test.err)
		require.Equal(t, test.timeout, IsTimeout(test.err), "%v", test.err)
		require.Equal(t, !test.server && !test.timeout, IsBroken(test.err), "%v", test.err)
	}
	for _, err := range []error{nil, io.EOF, context.DeadlineExceeded, errors.New("READONLY, says somebody else")} {
		require.Nil(t, FaultOf(err), "%v", err)
		require.Equal(t, err, Diagnose(err))
		require.False(t, FaultOf(err).IsAny(ReadOnly))
	}
	for condition, is := range map[Condition]bool{ReadOnly: true, Loading: true, Busy: false, "": false} {
		require.Equal(t, is, FaultOf(fmt.Errorf("wrapped: %w", &Fault{Condition: condition})).IsAny(ReadOnly, Loading), condition)
	}
}

// What the kernel says of a connection that did not answer its probes is a timeout, by its own
// name. It is no server that is slow: what can be sent on another connection is.
func TestConnectionThatTheKernelFoundDeadIsBroken(t *testing.T) {
	dead := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	require.True(t, dead.Timeout())
	require.False(t, IsTimeout(dead))
	require.True(t, IsBroken(dead))
	slow := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	require.True(t, IsTimeout(slow))
	require.False(t, IsBroken(slow))
}

// everyByte has each byte four times: with it a payload is as long as it may be.
var everyByte = func() string {
	var b strings.Builder
	for i := range MaxPayloadLength {
		b.WriteByte(byte(i))
	}
	return b.String()
}()

// A text that no attempt has written has no payload. Its identity is that of an owner value with
// another payload than is known here, and else all of it.
func TestPayloadOfAnotherProgram(t *testing.T) {
	random := strings.Repeat("A", 22)
	owner := "web-1/" + random
	values := map[string]string{ // identities
		owner: "web-1", owner + "?" + owner: owner + "?web-1", owner + "?x/" + random: owner + "?x",
		reservation + NewMember(1, NewProcess(), owner+"?x"): owner + "?x", // the key is kept for it, and nothing more
	}
	for _, all := range []string{
		"", "?", "/", "web-1", "web-1?x", "/" + random + "?x", random + "?x", "web-1/A?x", owner + "x", owner + "x?y", owner + "?a/b", owner + "/?x",
	} {
		values[all] = all
	}
	for _, payload := range []string{ // %E9 is how %e9 is written, and A how %41 is
		"", "%", "%zz", "%e9", "%41", "a b", "a?b", "\x00", "a\n", "\x1b[2J", "\xff", "é", "x=1&y=2",
		strings.Repeat("x", MaxPayloadLength+1), strings.Repeat("%00", MaxPayloadLength+1), strings.Repeat("x", 1<<20),
	} {
		values[owner+"?"+payload] = "web-1"
	}
	for value, identity := range values {
		require.Equal(t, identity, ParseOwner(value).Identity, "%.100q", value)
		require.Empty(t, ParseOwner(value).Payload, "%.100q", value)
		require.LessOrEqual(t, len(ParseOwner(value).Random), randomLength, "%.100q", value)
	}
	require.Equal(t, "x", ParseOwner(owner+"?x").Payload)
	require.Equal(t, everyByte, ParseOwner(NewOwner("web-1", everyByte)).Payload)
	require.Empty(t, ParseOwner(NewOwner("web-1", everyByte+"x")).Payload, "longer than any that is written")
}

// No name of a prefix is one of another prefix, whatever it is: what another package keeps under it
// has braces, too.
func TestPrefixesShareNoNames(t *testing.T) {
	seen := make(map[string]string)
	for _, prefix := range []string{"a", "b", "a:", "a/b", "a:fences", "a:roster", "a:fences:fences", "a:cards", "a:journal:k/x", "fences"} {
		key := NewKeys(prefix, "key")
		for _, name := range []string{key.Fences, key.Lock, key.Lock + ":wait", RosterKeys(prefix).Lock, prefix + ":{}:cards:k", prefix + ":{}:journal:k/{key}"} {
			require.Empty(t, seen[name], name)
			seen[name] = prefix
		}
	}
}

// A group ends before the first key that it has, and before an acquisition with another TTL,
// however often the buffers were used before.
func TestGroupEndsBeforeAKeyThatItHas(t *testing.T) {
	var b Buffers
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, MaxGroup).Draw(t, "calls")
		different := rapid.SampledFrom([]int{2, 20, 2000, 1 << 20}).Draw(t, "of so many keys")
		ttls := rapid.SampledFrom([]string{"1", "12"}).Draw(t, "TTLs")
		var calls []*Call
		want, seen, ttl := 0, make(map[int]bool), ""
		for i := range n {
			key := rapid.IntRange(0, different-1).Draw(t, "key")
			k := NewKeys("p", strconv.Itoa(key))
			c := &Call{Op: Release, Keys: &k, Keep: "0"}
			if rapid.Bool().Draw(t, "acquire") {
				of := rapid.IntRange(0, 10*len(ttls)).Draw(t, "TTL") / 11
				c = &Call{Op: Acquire, Keys: &k, TTL: ttls[of : of+1]}
				ttl = cmp.Or(ttl, c.TTL)
			}
			calls = append(calls, c)
			if want == i && !seen[key] && (c.Op == Release || c.TTL == ttl) {
				want = i + 1
			}
			seen[key] = true
		}
		require.Equal(t, want, b.Group(calls))
	})
}
