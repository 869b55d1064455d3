//go:build long

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

// Each broken set-up is found, with exactly what is wrong with it and no more; and nothing is found
// where nothing is wrong.
func TestDoctorFindsWhatIsBroken(t *testing.T) {
	documented := severities(t)
	var mu sync.Mutex
	table := &bytes.Buffer{}
	w := tabwriter.NewWriter(table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET-UP\tFOUND\tCODE\tTOOK")
	t.Run("set-ups", func(t *testing.T) {
		for _, s := range setups(t) {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				count := s.count
				if count == 0 {
					count = 3
				}
				urls, flags, environ := s.prepare(t, startServers(t, count, s.options...))
				flags = append(flags, "--node-timeout", "1s") // a machine that is busy is slow
				began := time.Now()
				ask := func() called {
					return call(t, append(nodesAt(urls...), environ...), append([]string{"doctor", "-o", "json"}, flags...)...)
				}
				got := ask()
				for tries := 0; tries < 3 && !slices.Contains(s.want, "timeout") && strings.Contains(got.out, `"timeout"`); tries++ {
					got = ask() // so busy that a node had no time for a second
				}
				took := time.Since(began)
				var d doctorDocument
				require.NoError(t, json.Unmarshal([]byte(got.out), &d), "%s%s", got.out, got.err)
				codes := []string{}
				for _, f := range d.Findings {
					if f.Code != "unused" || slices.Contains(s.want, f.Code) { // of most set-ups no process is a part
						codes = append(codes, f.Code)
					}
					require.NotEmpty(t, f.Seen, "%+v", f)
					require.NotEmpty(t, f.Advice, "%+v", f)
					require.Contains(t, documented[f.Code], string(f.Severity), "docs/steering.md: %+v", f)
					require.NotContains(t, f.Seen+f.Advice, "p4ss")
				}
				require.ElementsMatch(t, s.want, codes, "%s", got.out)
				require.Equal(t, s.worst, got.code, "%s", got.out)
				for _, part := range s.says {
					require.Contains(t, strings.ReplaceAll(got.out, `\"`, `"`), part)
				}
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(w, "%s\t%s\t%d\t%v\n", s.name, strings.Join(codes, " "), got.code, took.Round(10*time.Millisecond))
			})
		}
	})
	require.NoError(t, w.Flush())
	t.Logf("\n%s", table)
}
