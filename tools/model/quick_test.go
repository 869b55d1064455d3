package model

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestQuick(t *testing.T) {
	limit := 3_000_000
	if l := os.Getenv("LIMIT"); l != "" {
		limit, _ = strconv.Atoi(l)
	}
	cfgs := append(append(Designs(), Mistakes()...), Spares()...)
	v := func(name string, c Config, f func(*Config)) { cfgs = append(cfgs, c.but(name, f)) }
	narrow := func(c *Config) { c.Clocks = [2]int8{0, 0} }
	high := func(c *Config) { c.Clocks = [2]int8{1, 1} }
	_ = high
	v("V not checked", tokens.with(NotChecked, TokenOrder), func(*Config) {})
	v("V one clock", tokens.with(OneClock, TokenOrder), func(*Config) {})
	v("V gate", tokens.with(GateWithoutSkew, TokenOrder), func(*Config) {})
	v("V raise", tokens.with(RaiseUnvouched, TokenOrder), narrow)
	v("V agree", tokens.with(AgreeUnvouched, TokenOrder), narrow)
	ext := func(c *Config) { c.Extremes = true }
	v("E not checked", tokens.with(NotChecked, TokenOrder), ext)
	v("E one clock", tokens.with(OneClock, TokenOrder), ext)
	v("E gate", tokens.with(GateWithoutSkew, TokenOrder), ext)
	v("E raise", tokens.with(RaiseUnvouched, TokenOrder), ext)
	v("E agree", tokens.with(AgreeUnvouched, TokenOrder), ext)
	v("E own", steady.with(OwnRaises, TokenOrder), func(c *Config) { c.Extremes, c.AsksOn = true, 1 })
	v("E sound", tokens, ext)
	//VARIANTS
	for _, c := range cfgs {
		if w := os.Getenv("WHAT"); w != "" {
			ok := false
			for _, x := range strings.Split(w, ";") {
				ok = ok || strings.HasPrefix(c.Name, x)
			}
			if !ok {
				continue
			}
		}
		p := newProtocol(c)
		r := search(p, 2, limit)
		fmt.Printf("%-50s states %d trans %d depth %d exhausted %v %.0fs violates %q want %q\n", c.Name, r.states, r.transitions, r.depth, r.exhausted, r.elapsed.Seconds(), r.broken, c.Only)
		if r.broken != none && (os.Getenv("TRACE") != "" || c.Defect == Sound) {
			fmt.Println(p.report(r.trace))
		}
	}
}
