package place

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// CPU returns how much CPU all servers have used, user and system, from INFO cpu.
func (s *Servers) CPU(ctx context.Context) (used time.Duration, err error) {
	for _, n := range s.Nodes() {
		text, err := do(ctx, n, "INFO", "cpu").ToString()
		if err != nil {
			return 0, fmt.Errorf("place: %s: %w", n.Addr(), err)
		}
		found := 0
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name != "used_cpu_sys" && name != "used_cpu_user" {
				continue
			}
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("place: %s: INFO cpu: %w", n.Addr(), err)
			}
			found++
			used += time.Duration(seconds * float64(time.Second))
		}
		if found != 2 {
			return 0, fmt.Errorf("place: %s: INFO cpu lacks used_cpu_sys or used_cpu_user", n.Addr())
		}
	}
	return used, nil
}
