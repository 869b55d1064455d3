package redlocktest

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// parsed are the texts that miniredis has parsed without an error. It does so with each SCRIPT
// LOAD, and keeps what it has compiled of each text, both for as long as the program lives. So a
// process keeps the scripts that it is given itself, and hands over their text when they are to
// run.
var parsed sync.Map // of texts

// cache does what SCRIPT asks for, and reports false if miniredis is to.
func (p *process) cache(c *server.Peer, args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch word := strings.ToUpper(args[0]); {
	case word == "LOAD" && len(args) == 2:
		text := args[1]
		if _, known := parsed.Load(text); !known {
			if p.ask("SCRIPT", "LOAD", text)[0] == '-' {
				return false // which says why
			}
			parsed.Store(text, nil)
		}
		sum := sha1.Sum([]byte(text))
		hash := hex.EncodeToString(sum[:])
		p.mu.Lock()
		p.loaded[hash] = text
		p.mu.Unlock()
		c.WriteBulk(hash)
		return true
	case word == "EXISTS":
		for _, hash := range args[1:] {
			if text := p.text(hash); text != "" {
				p.ask("SCRIPT", "LOAD", text)
			}
		}
	case word == "FLUSH":
		p.flushScripts()
	}
	return false
}

// evaluation is what miniredis is to do in place of EVALSHA or EVALSHA_RO; nil if it is to do that.
func (p *process) evaluation(cmd string, args []string) []string {
	if len(args) > 0 {
		if text := p.text(args[0]); text != "" {
			return append([]string{"EVAL", text}, args[1:]...)
		}
	}
	if cmd == "EVALSHA_RO" { // miniredis takes TIME for a command that writes
		return append([]string{"EVALSHA"}, args...)
	}
	return nil
}

// text is that of a script that was loaded; empty if it was not.
func (p *process) text(hash string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loaded[hash]
}

func (p *process) flushScripts() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.loaded)
}
