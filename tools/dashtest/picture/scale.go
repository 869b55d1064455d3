package picture

import (
	"math"
	"strconv"
	"time"
)

// ticks returns round values from 0 or below low to above high, about count of them.
func ticks(low, high float64, count int) []float64 {
	if high <= low {
		high = low + 1
	}
	raw := (high - low) / float64(count)
	magnitude := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * magnitude
	for _, m := range []float64{1, 2, 2.5, 5} {
		if raw <= m*magnitude {
			step = m * magnitude
			break
		}
	}
	var all []float64
	for i := math.Floor(low / step); ; i++ {
		all = append(all, i*step)
		if i*step >= high {
			return all
		}
	}
}

// timeTicks returns round instants between start and end, at most count of them.
func timeTicks(start, end time.Time, count int) []time.Time {
	every := time.Hour
	for _, e := range []time.Duration{5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800} {
		if end.Sub(start)/(e*time.Second) < time.Duration(count) {
			every = e * time.Second
			break
		}
	}
	var all []time.Time
	for t := start.Truncate(every).Add(every); t.Before(end); t = t.Add(every) {
		all = append(all, t)
	}
	return all
}

// format is a value in the unit of a panel. spread is how far values of the same axis are apart,
// which tells how exact it has to be; it may be the value itself.
func format(unit string, value, spread float64) string {
	if unit != "s" {
		return decimals(value, spread)
	}
	switch size := math.Abs(value); {
	case size == 0:
		return "0 s"
	case size < 1e-3:
		return decimals(value*1e6, spread*1e6) + " µs"
	case size < 1:
		return decimals(value*1e3, spread*1e3) + " ms"
	case size < 120:
		return decimals(value, spread) + " s"
	default:
		return decimals(value/60, spread/60) + " min"
	}
}

// decimals is a number with as many decimals as the spread needs.
func decimals(value, spread float64) string {
	places := 0
	if spread = math.Abs(spread); spread > 0 {
		places = max(0, 1-int(math.Floor(math.Log10(spread)+1e-9)))
	}
	text := strconv.FormatFloat(value, 'f', min(places, 6), 64)
	if places > 0 { // without zeros at the end
		for text[len(text)-1] == '0' {
			text = text[:len(text)-1]
		}
		if text[len(text)-1] == '.' {
			text = text[:len(text)-1]
		}
	}
	return text
}

// clock is a time of day in UTC.
func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) }
