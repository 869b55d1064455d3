package place

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Calls returns how many commands all servers have run, from INFO commandstats. What scripts call counts, beside the command that runs
// the script; this package's own looks do not.
func (s *Servers) Calls(ctx context.Context) (calls int64, err error) {
	for _, n := range s.Nodes() {
		text, err := do(ctx, n, "INFO", "commandstats").ToString()
		if err != nil {
			return 0, fmt.Errorf("place: %s: %w", n.Addr(), err)
		}
		byName, err := parseCommandStats(text)
		if err != nil {
			return 0, err
		}
		for name, n := range byName {
			if name != "info" { // also what Tenure sends when it connects
				calls += n
			}
		}
	}
	return calls, nil
}

// parseCommandStats reads lines such as
//
//	cmdstat_get:calls=12,usec=31,usec_per_call=2.58,rejected_calls=0,failed_calls=0
func parseCommandStats(text string) (map[string]int64, error) {
	calls := make(map[string]int64)
	for line := range strings.SplitSeq(text, "\r\n") {
		line, ok := strings.CutPrefix(line, "cmdstat_")
		if !ok {
			continue
		}
		name, fields, _ := strings.Cut(line, ":")
		first, _, _ := strings.Cut(fields, ",")
		n, err := strconv.ParseInt(strings.TrimPrefix(first, "calls="), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("place: unexpected line in INFO commandstats: %q", line)
		}
		calls[name] = n
	}
	return calls, nil
}
