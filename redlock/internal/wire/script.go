package wire

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/bridge"
)

//go:embed *.lua lib/*.lua
var sources embed.FS

// Script is a Lua text and the SHA-1 under which a server caches it.
type Script struct{ body, text, sha string }

// Text is what a server is to load or to carry out.
func (s *Script) Text() string { return s.text }

var (
	// A line --include name stands for the file name.lua in lib.
	include = regexp.MustCompile(`(?m)^--include ([a-z_]+)$`)
	// comments are lines. Servers get none.
	comments = regexp.MustCompile(`(?m)^ *--.*\n`)
	// frame is frame.lua, around each script.
	frame = regexp.MustCompile(`(?m)^--script$`).Split(source("frame"), 2)
)

// source is a file as it is written.
func source(name string) string {
	text, err := fs.ReadFile(sources, name+".lua")
	if err != nil {
		panic(fmt.Sprintf("wire: a script of this package is missing: %v", err)) // the compiler embeds them
	}
	return string(text)
}

// body is a script with what it includes, without comments.
func body(name string) string {
	text := include.ReplaceAllStringFunc(source(name), func(line string) string {
		return strings.TrimSuffix(body("lib/"+include.FindStringSubmatch(line)[1]), "\n")
	})
	return comments.ReplaceAllLiteralString(text, "")
}

func load(name string) *Script { return newScript(body(name)) }

func newScript(body string) *Script {
	clean := func(text string) string {
		return comments.ReplaceAllLiteralString(text, "")
	}
	text := clean(frame[0]) + body + strings.TrimPrefix(clean(frame[1]), "\n")
	sum := sha1.Sum([]byte(text))
	return &Script{body: body, text: text, sha: hex.EncodeToString(sum[:])}
}

// Builder is a client, or a connection of its own.
type Builder interface{ B() valkey.Builder }

// call is a call of the script with words, of which the first are keys.
func (s *Script) call(client Builder, words []string, numkeys int, reads bool) valkey.Completed {
	keys, args := words[:numkeys], words[numkeys:]
	if reads {
		return client.B().EvalshaRo().Sha1(s.sha).Numkeys(int64(numkeys)).Key(keys...).Arg(args...).Build()
	}
	return client.B().Evalsha().Sha1(s.sha).Numkeys(int64(numkeys)).Key(keys...).Arg(args...).Build()
}

// pairs is the script of acquisitions and releases together, which no operation has alone.
var pairsScript = load("pairs")

// Ungated are the scripts that any server process may run: what they do is right on one that was
// restarted too. They are loaded together, so that a server has either all of them or none.
func Ungated() []*Script {
	scripts := []*Script{pairsScript}
	for op := range table {
		if r := &table[op]; r.script != nil && !r.gated {
			scripts = append(scripts, r.script)
		}
	}
	for _, s := range bridge.Scripts() {
		if !s.Gated {
			scripts = append(scripts, anyServer.guest(s))
		}
	}
	return scripts
}

// anyServer has the ungated scripts of other packages.
var anyServer = &Set{}

// Set is the scripts of one server process, as texts that no other process was ever given: what
// acquires, what puts a key back, and what reads and completes records. A nil Set stands for a
// process that was not vouched for, which runs the Ungated scripts only.
type Set struct {
	head    string       // of all of them
	scripts [ops]*Script // of the operations with texts of their own
	pairs   *Script
	guests  sync.Map // of *bridge.Script, to *Script; made when they are first needed
}

// NewSet makes the scripts of the process with that run_id. Only a look loads them: the script
// cache of a server is neither persisted nor replicated, so a process that was not vouched for
// answers NOSCRIPT, in the same step that would have granted.
func NewSet(runID string) *Set {
	head := "local process = '" + runID + "'\n"
	g := &Set{head: head, pairs: newScript(head + pairsScript.body)}
	for op := range table {
		if r := &table[op]; r.own && !r.guest {
			g.scripts[op] = newScript(head + r.script.body)
		}
	}
	return g
}

// AnyProcess are the scripts of a Quorum without a restart gate: whatever a process has is what it
// knows.
var AnyProcess *Set

// Scripts are those that a server is to know: the Ungated ones, and those of the set.
func (g *Set) Scripts() []*Script {
	scripts := Ungated()
	if g == nil {
		return scripts
	}
	for _, s := range g.scripts {
		if s != nil {
			scripts = append(scripts, s)
		}
	}
	for _, s := range bridge.Scripts() {
		if s.Gated {
			scripts = append(scripts, g.guest(s))
		}
	}
	return append(scripts, g.pairs)
}

// Reading is what the set has for operations that only read.
func (g *Set) Reading() *Set {
	reading := &Set{head: g.head}
	for op := range table {
		if table[op].reads {
			reading.scripts[op] = g.scripts[op]
		}
	}
	return reading
}

// guest is the process's text of a script of another package.
func (g *Set) guest(s *bridge.Script) *Script {
	if made, ok := g.guests.Load(s); ok {
		return made.(*Script)
	}
	made, _ := g.guests.LoadOrStore(s, newScript(g.head+comments.ReplaceAllLiteralString(s.Text, "")))
	return made.(*Script)
}

// scriptOf is that of a call.
func (g *Set) scriptOf(c *Call) *Script {
	switch r := &table[c.Op]; {
	case r.guest && r.gated:
		return g.guest(c.Guest.Script)
	case r.guest:
		return anyServer.guest(c.Guest.Script)
	}
	return g.script(c.Op)
}

// script is that of an operation.
func (g *Set) script(op Op) *Script {
	if g != nil && g.scripts[op] != nil {
		return g.scripts[op]
	}
	return table[op].script
}
