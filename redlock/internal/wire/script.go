package wire

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
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

// Text is what a server is to carry out.
func (s *Script) Text() string { return s.text }

var (
	// A line --include name stands for the file name.lua in lib.
	include = regexp.MustCompile(`(?m)^--include ([a-z_]+)$`)
	// comments are lines. Servers get none.
	comments = regexp.MustCompile(`(?m)^ *--.*\n`)
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

func newScript(text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{text: text, sha: hex.EncodeToString(sum[:])}
}

// Builder is a client, or a connection of its own.
type Builder interface{ B() valkey.Builder }

// Target is the server process that calls are for, as far as that is known: nil for not at all.
type Target struct {
	Process string // its run_id, for the scripts of other packages; empty where processes have no restart gate
	Vouched bool   // it was vouched for, and may put keys back
	Whole   bool   // it does not know the scripts: it gets their texts, which it keeps

	// Knows are the scripts that it has been sent; those that it has not get there with their text
	// the first time. Nil for that it may know all of them.
	Knows map[*Script]bool
}

// gets reports whether a script is sent with its text.
func (t *Target) gets(s *Script) bool {
	if t == nil || !t.Whole && (t.Knows == nil || t.Knows[s]) {
		return false
	}
	if t.Knows != nil {
		t.Knows[s] = true
	}
	return true
}

// call is a call of the script with words, of which the first are keys.
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

// pairs is the script of acquisitions and releases together, which no operation has alone.
var pairsScript = load("pairs")

// Scripts are all that a server is asked to run.
func Scripts() []*Script {
	scripts := []*Script{pairsScript}
	for op := range table {
		if r := &table[op]; r.script != nil {
			scripts = append(scripts, r.script)
		}
	}
	for _, s := range bridge.Scripts() {
		scripts = append(scripts, guestScript(s))
	}
	return scripts
}

// guests are scripts of other packages, *bridge.Script to *Script; made when they are first needed.
var guests sync.Map

// guestScript is that of another package. The last argument of a gated one is the process that it
// is for.
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

// scriptOf is that of a call.
func scriptOf(c *Call) *Script {
	if table[c.Op].guest {
		return guestScript(c.Guest.Script)
	}
	return table[c.Op].script
}
