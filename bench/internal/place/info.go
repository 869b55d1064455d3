package place

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// CPU returns how much CPU all servers have used, user and system, from INFO cpu.
func (s *Servers) CPU(ctx context.Context) (time.Duration, error) {
	seconds, err := s.sum(ctx, "cpu", "used_cpu_user", "used_cpu_sys")
	return time.Duration(seconds * float64(time.Second)), err
}

// sum adds up fields of a section of INFO, of all servers.
func (s *Servers) sum(ctx context.Context, section string, fields ...string) (sum float64, err error) {
	for _, n := range s.Nodes() {
		text, err := do(ctx, n, "INFO", section).ToString()
		if err != nil {
			return 0, fmt.Errorf("place: %s: %w", n.Addr(), err)
		}
		for _, field := range fields {
			value, err := infoNumber(text, field)
			if err != nil {
				return 0, fmt.Errorf("place: %s: INFO %s: %w", n.Addr(), section, err)
			}
			sum += value
		}
	}
	return sum, nil
}

// infoNumber finds a field in what INFO answers, which is lines of "field:value".
func infoNumber(text, field string) (float64, error) {
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == field {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("there is no %s", field)
}
