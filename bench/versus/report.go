package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// report is the results of a run.
type report struct {
	machine string
	boards  []*board
}

// caveats is the text that a reader has to know.
const caveats = "Medians of the rounds, and in parentheses the least and the most; ratios are those of the same round. The *floor* is no lock: bare valkey-go, a connection and a goroutine a " +
	"node, SET NX PX and a script that compares and deletes, and on with the quorum-th reply. It has one owner, no validity, no token, no gate, no timeout and no order. " +
	"*Floor, batching* has one writer a node, which sends what is waiting as one pipeline, with one call of a script for all releases. " +
	"*Floor, next known* hands over: a release calls the next, which this process knows, so there is no queue. " +
	"A library on one server does a fifth of the work, and is gone with that server. " +
	"CPU is that of a pair: the client's from getrusage, a server's from INFO cpu, the mean of those that the rival locks on. "

func (r *report) markdown() string {
	var w strings.Builder
	w.WriteString(r.machine + ".\n\n")
	most := 0.0
	for _, b := range r.boards {
		most = max(most, b.foreign)
	}
	fmt.Fprintf(&w, "%sOther processes took at most %.1f %% of the processors' time in a row.\n\n", caveats, 100*most)
	for i := 0; i < len(r.boards); {
		group := r.boards[i : i+1]
		for i += len(group); i < len(r.boards) && r.boards[i].title == group[0].title; i++ {
			group = group[:len(group)+1]
		}
		boards(group).markdown(&w)
	}
	return w.String()
}

// machine returns the description of the machine and the versions with which a run is made.
func machine(server string, now time.Time) string {
	cpu := "unknown"
	info, _ := os.ReadFile("/proc/cpuinfo")
	if _, rest, ok := strings.Cut(string(info), "model name"); ok { // Linux names it for each processor; the first counts
		cpu, _, _ = strings.Cut(strings.TrimLeft(rest, "\t: "), "\n")
	}
	known := make(map[string]string)
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if known[m.Path] = m.Version; m.Replace != nil {
				known[m.Path] = "this checkout"
			}
		}
	}
	var versions []string
	note := func(module string) {
		text := module[strings.Index(module, "/")+1:] + " " + cmp.Or(known[module], "unknown")
		if !slices.Contains(versions, text) {
			versions = append(versions, text)
		}
	}
	for _, k := range append(rival.All(), gocronRedisLock, gocronAlone) {
		note(k.Module)
	}
	note("github.com/redis/go-redis/v9")
	note("github.com/Shopify/toxiproxy/v2")
	return fmt.Sprintf("%s; %s/%s, %d CPUs (%s), GOMAXPROCS %d; %s; Valkey %s, %d servers on loopback without persistence; %s",
		now.UTC().Format("2006-01-02 15:04 UTC"), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu, runtime.GOMAXPROCS(0), runtime.Version(),
		server, nodes, strings.Join(versions, ", "))
}
