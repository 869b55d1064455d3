package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// In JSON, too, a terminal gets no character that it might obey, and a program reads what there
// was.
func TestJSONIsEscaped(t *testing.T) {
	t.Parallel()
	const text = "größe 日本 \u009b31m \u202e \x7f \u200b \U000e0041 \u2028 \x1b \n \\ \" <&> \ufeff \U0001f600"
	var out bytes.Buffer
	p := &program{out: &out, output: asJSON}
	require.NoError(t, p.show(holderDocument{Key: text, Payload: "\xff"}))
	for _, r := range out.String() {
		require.True(t, r == '\n' || unicode.IsPrint(r), "%U", r)
	}
	require.Contains(t, out.String(), `größe 日本 \u009b31m \u202e \u007f \u200b \udb40\udc41 \u2028`)
	require.Contains(t, out.String(), `<&>`)
	require.Contains(t, out.String(), `"identity": null`)
	var d holderDocument
	require.NoError(t, json.Unmarshal(out.Bytes(), &d))
	require.Equal(t, text, d.Key)
	require.Equal(t, "\ufffd", d.Payload, "what is no UTF-8 cannot be told in JSON")
}

// full is a stream that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// An output that cannot be written has a code of its own, unless there is worse to tell.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		args string
		code int
	}{{"version", exitUnwritten}, {"version -o json", exitUnwritten}, {"nodes", exitNoQuorum}, {"doctor", exitUnwritten}} {
		var said strings.Builder
		p := &program{in: strings.NewReader(""), out: full{}, err: &said, environ: nodesAt("valkey://127.0.0.1:1")}
		require.Equal(t, of.code, p.run(t.Context(), strings.Fields(of.args)), "%s: %s", of.args, said.String())
		require.Contains(t, said.String(), "the output cannot be written: no space left on device")
		require.NotContains(t, said.String(), `\n`, "errors are told on one line")
	}
}

// A --timeout that has passed is told as that, also where too few nodes have answered by then.
func TestTimeoutThatHasPassed(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"status", "nodes", "jobs", "orders"} {
		got := call(t, nodesAt("valkey://127.0.0.1:1"), command, "--timeout", "1ns")
		require.Equal(t, exitTimedOut, got.code, "%s: %s", command, got.err)
		require.Contains(t, got.err, "--timeout 1ns has passed")
		require.Contains(t, got.err, "give it longer with --timeout")
		require.NotContains(t, got.err, `\n`)
	}
}
