package wire

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/bridge"
)

//go:embed *.lua lib/*.lua
var sources embed.FS

// Script is a Lua text and the SHA-1 under which a server caches it.
type Script struct{ text, sha string }

// Text returns the Lua source that a server runs: without comment lines, and with the files that it
// includes.
func (s *Script) Text() string { return s.text }

var (
	// A line --include name stands for the file name.lua in lib.
	include = regexp.MustCompile(`(?m)^--include ([a-z_]+)$`)
	// comments matches whole lines that are comments. They are not sent to servers.
	comments = regexp.MustCompile(`(?m)^ *--.*\n`)
)

// body returns a script with the files that it includes, without comment lines.
func body(name string) string {
	text, err := sources.ReadFile(name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("wire: a script of this package is missing: %v", err)) // the compiler embeds them
	}
	whole := include.ReplaceAllStringFunc(string(text), func(line string) string {
		return strings.TrimSuffix(body("lib/"+include.FindStringSubmatch(line)[1]), "\n")
	})
	return comments.ReplaceAllLiteralString(whole, "")
}

func load(name string) *Script { return newScript(body(name)) }

func newScript(text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{text: text, sha: hex.EncodeToString(sum[:])}
}

// Builder builds commands: a client, or a dedicated connection.
type Builder interface{ B() valkey.Builder }

// Target says what is known of the server process that a command is for. A nil Target knows
// nothing.
type Target struct {
	Process string // its run_id, for gated scripts of other packages; empty without a restart gate
	Vouched bool   // it was vouched for, so an extension may put keys back

	// Knows has the scripts that the process was sent. A script that is not in it is sent with its
	// text, and then added. With nil the process may know all scripts.
	Knows map[*Script]bool
}

// gets reports whether a script is sent with its text, and adds it to Knows.
func (t *Target) gets(s *Script) bool {
	if t == nil || t.Knows == nil || t.Knows[s] {
		return false
	}
	t.Knows[s] = true
	return true
}

// call makes the command that runs the script. The first numkeys words are keys, the others are
// arguments. reads selects the read-only form of the command, whole the form with the text.
func (s *Script) call(client Builder, words []string, numkeys int, reads, whole bool) valkey.Completed {
	name, script := "EVALSHA", s.sha
	if whole {
		name, script = "EVAL", s.text
	}
	if reads {
		name += "_RO"
	}
	return client.B().Arbitrary(name, script, strconv.Itoa(numkeys)).Keys(words[:numkeys]...).Args(words[numkeys:]...).Build()
}

// pairsScript does several acquisitions and releases in one command. It belongs to no row of the
// table.
var pairsScript = load("pairs")

// Scripts returns all scripts that a server is asked to run, with those of package bridge.
func Scripts() []*Script {
	scripts := []*Script{pairsScript}
	for op := range table {
		if r := &table[op]; r.script != nil && !slices.Contains(scripts, r.script) {
			scripts = append(scripts, r.script)
		}
	}
	for _, s := range bridge.Scripts() {
		scripts = append(scripts, guestScript(s))
	}
	return scripts
}

// guests has the scripts of other packages, *bridge.Script to *Script. Each is made at its first
// use.
var guests sync.Map

// guestScript returns the Script for a script of another package. The last argument of a gated one
// is the run_id of the process that it is for; the script finds it in the local process, and not in
// ARGV.
func guestScript(s *bridge.Script) *Script {
	if made, ok := guests.Load(s); ok {
		return made.(*Script)
	}
	head := ""
	if s.Gated {
		head = "local process = ARGV[#ARGV]\nARGV[#ARGV] = nil\n"
	}
	made, _ := guests.LoadOrStore(s, newScript(head+comments.ReplaceAllLiteralString(s.Text, "")))
	return made.(*Script)
}

// scriptOf returns the script of a call; nil if its operation is a plain command.
func scriptOf(c *Call) *Script {
	if table[c.Op].guest {
		return guestScript(c.Guest.Script)
	}
	return table[c.Op].script
}
