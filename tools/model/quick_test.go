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
	_ = v
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
