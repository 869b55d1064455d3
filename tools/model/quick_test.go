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
	short := tokens.but("", func(c *Config) { c.NoStrays, c.Extends = true, false })
	calm := short.but("", func(c *Config) { c.Restarts = 0 })
	asked := calm.but("", func(c *Config) { c.AsksOn, c.Clocks = 1, []int8{1} })
	cfgs := append(append(Designs(), Mistakes()...), Spares()...)
	cfgs = append(cfgs,
		calm.but("x calm", func(*Config) {}), short.but("x short", func(*Config) {}), asked.but("x asked", func(*Config) {}),
		calm.with(RaiseFirst, TokenOrder), calm.with(NotStrict, TokenOrder), clockless.with(NotStrict, TokenOrder), calm.with(TokenOnOne, TokenOrder), calm.with(Mixed, TokenOrder),
		asked.with(OwnRaises, TokenOrder), short.with(RaiseUnvouched, none), short.with(AgreeUnvouched, none), short.with(AgreeAny, none), clockless.with(AgreeAny, none), calm.with(SecondProves, none),
		short.with(CountersAlone, none), short.with(SecondByCounters, none), short.with(ClocksIgnored, TokenOrder), short.with(SeenIgnored, none), clockless.with(SeenIgnored, none), short.with(OneClock, TokenOrder), short.with(OldProposal, none),
		short.but("x asked, restart", func(c *Config) { c.AsksOn, c.Clocks, c.Validity = 1, []int8{-1, 1}, 3 }).with(OldProposal, none),
		short.but("x asked, restart", func(c *Config) { c.AsksOn, c.Clocks, c.Validity = 1, []int8{-1, 1}, 3 }),
	)
	v := func(name string, f func(*Config)) { cfgs = append(cfgs, short.but(name, f)) }
	v("v strays", func(c *Config) { c.NoStrays, c.Restarts = false, 0 })
	v("v strays1", func(c *Config) { c.NoStrays, c.Restarts, c.Clocks = false, 0, []int8{1} })
	v("v ext", func(c *Config) { c.Extends, c.Restarts = true, 0 })
	v("v ext1", func(c *Config) { c.Extends, c.Restarts, c.Clocks = true, 0, []int8{1} })
	v("v extr1", func(c *Config) { c.Extends, c.Clocks = true, []int8{1} })
	v("v wide", func(c *Config) { c.Skew, c.Gate = 2, 7 })
	v("v three", func(c *Config) { c.Attempts, c.Starts, c.Restarts, c.Clocks = 3, 3, 0, []int8{1} })
	v("v three in turn", func(c *Config) { c.Starts, c.Restarts, c.Clocks = 3, 0, []int8{1} })
	v("v two restarts", func(c *Config) { c.Restarts, c.Clocks = 2, []int8{1} })
	v("v two restarts pm", func(c *Config) { c.Restarts = 2 })
	v("v five", func(c *Config) { c.Nodes, c.Restarts, c.Clocks = 5, 0, []int8{1} })
	v("v asked", func(c *Config) { c.AsksOn, c.Restarts, c.Clocks = 2, 0, []int8{1} })
	v("v shared", func(c *Config) { c.Others, c.Restarts, c.Clocks = 1, 0, []int8{1} })
	v("v sharedr", func(c *Config) { c.Others, c.Clocks = 1, []int8{1} })
	v("v sharede", func(c *Config) { c.Others, c.Restarts, c.Clocks, c.Extends = 1, 0, []int8{1}, true })
	v("v rounds", func(c *Config) { c.Others, c.Restarts, c.Clocks, c.Rounds = 2, 0, []int8{1}, 2 })
	cfgs = append(cfgs, short.but("", func(c *Config) { c.Validity = 3 }).with(OldProposal, TokenOrder).but("y old", func(*Config) {}))
	cfgs = append(cfgs, short.but("", func(c *Config) { c.Validity = 3 }).with(VouchLate, TokenOrder).but("y late", func(*Config) {}))
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
		fmt.Printf("%-50s states %d trans %d depth %d exhausted %v %.0fs violates %q\n", c.Name, r.states, r.transitions, r.depth, r.exhausted, r.elapsed.Seconds(), r.broken)
		if r.broken != none && (os.Getenv("TRACE") != "" || c.Defect == Sound) {
			fmt.Println(p.report(r.trace))
		}
	}
}
