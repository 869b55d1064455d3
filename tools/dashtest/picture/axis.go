package picture

import (
	"image"
	"math"
	"time"
)

// axis is that of the values. Its marks are round values.
type axis struct {
	plot      image.Rectangle
	log       bool
	low, high float64
	marks     []float64
}

func newAxis(panel Panel, plot image.Rectangle) *axis {
	field := panel.Field.Defaults
	a := &axis{plot: plot, log: field.Custom.Scale.Type == "log"}
	low, high, least := bounds(panel.Series, field.Custom.Stacking.Mode == "normal")
	if a.log {
		a.low = math.Pow(10, math.Floor(math.Log10(least)))
		a.high = math.Pow(10, math.Ceil(math.Log10(max(high, 10*a.low))))
		for v := a.low; v < a.high*2; v *= 10 {
			a.marks = append(a.marks, v)
		}
		return a
	}
	if field.Min != nil {
		low = *field.Min
	}
	a.marks = ticks(low, high, max(2, plot.Dy()/30))
	a.low, a.high = a.marks[0], a.marks[len(a.marks)-1]
	return a
}

// at is the place of a value. What has none on a logarithmic axis, such as 0, is at its foot.
func (a *axis) at(v float64) float64 {
	share := (v - a.low) / (a.high - a.low)
	if a.log {
		share = math.Log(max(v, a.low)/a.low) / math.Log(a.high/a.low)
	}
	return float64(a.plot.Max.Y) - float64(a.plot.Dy())*share
}

// spread is how far marks are apart at the i-th.
func (a *axis) spread(i int) float64 {
	if a.log {
		return a.marks[i]
	}
	return a.marks[1] - a.marks[0]
}

// bounds are the least and the greatest value of all series, 0 among them, on each other if they
// are stacked. least is the least above 0, or 1 if there is none.
func bounds(series []Series, stacked bool) (low, high, least float64) {
	heights := make(map[time.Time]float64)
	least = math.Inf(1)
	for _, s := range series {
		for _, pt := range s.Points {
			v := pt.Value
			if math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			if stacked {
				heights[pt.At] += v
				v = heights[pt.At]
			}
			low, high = min(low, v), max(high, v)
			if v > 0 {
				least = min(least, v)
			}
		}
	}
	if math.IsInf(least, 1) {
		least = 1
	}
	return low, high, least
}
