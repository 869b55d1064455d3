package picture

import (
	"image"
	"image/color"
	"math"

	"github.com/tenure-dev/tenure/tools/dashtest/dashboard"
)

// stat writes the last value of each series.
func (c *canvas) stat(panel Panel, area image.Rectangle) {
	field := panel.Field.Defaults
	if len(panel.Series) == 0 {
		c.text(c.faces.value, faint, area.Min.X+6, area.Min.Y+46, field.NoValue)
		return
	}
	wide := area.Dx() / len(panel.Series)
	for i, s := range panel.Series {
		x := area.Min.X + i*wide + 6
		value := math.NaN()
		if len(s.Points) > 0 {
			value = s.Points[len(s.Points)-1].Value
		}
		text := field.NoValue
		if !math.IsNaN(value) {
			exact := value
			if field.Decimals != nil {
				exact = 10 * math.Pow(10, -float64(*field.Decimals))
			}
			text = format(field.Unit, value, exact)
		}
		c.text(c.faces.value, threshold(field.Thresholds, value), x, area.Min.Y+46, fit(c.faces.value, text, wide-12))
		c.text(c.faces.label, faint, x, area.Min.Y+66, fit(c.faces.label, s.Name, wide-12))
	}
}

// threshold is the colour of the last step that the value has reached.
func threshold(t dashboard.Thresholds, value float64) color.RGBA {
	found := dark
	for _, s := range t.Steps {
		if s.Value == nil || value >= *s.Value {
			found = ink(s.Color)
		}
	}
	return found
}
