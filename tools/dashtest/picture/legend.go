package picture

import (
	"fmt"
	"image"
)

const legendLines = 3

// legend writes the names of the series at the bottom of area, and returns how many lines they
// take.
func (c *canvas) legend(panel Panel, area image.Rectangle) int {
	if len(panel.Series) == 0 {
		text := panel.Field.Defaults.NoValue
		if text == "" {
			text = missing
		}
		c.text(c.faces.label, faint, (area.Min.X+area.Max.X-width(c.faces.label, text))/2, (area.Min.Y+area.Max.Y)/2, text)
		return 1
	}
	type entry struct{ x, line, series int }
	var entries []entry
	x, line, left := area.Min.X, 0, 0
	for i, s := range panel.Series {
		wide := 16 + width(c.faces.small, s.Name) + 14
		if x+wide > area.Max.X+14 && x > area.Min.X {
			x, line = area.Min.X, line+1
		}
		if line == legendLines {
			left = len(panel.Series) - i
			break
		}
		entries = append(entries, entry{x, line, i})
		x += wide
	}
	lines := min(line+1, legendLines)
	if left > 0 {
		c.textRight(c.faces.small, faint, area.Max.X, area.Max.Y-2, fmt.Sprintf("and %d more", left))
	}
	for _, e := range entries {
		y := area.Max.Y - 2 - (lines-1-e.line)*legendLine
		c.fill(image.Rect(e.x, y-5, e.x+12, y-2), palette[e.series%len(palette)])
		c.text(c.faces.small, dark, e.x+16, y, fit(c.faces.small, panel.Series[e.series].Name, area.Max.X-e.x-16))
	}
	return lines
}
