package picture

import (
	"image"
	"image/color"
	"math"
	"strconv"

	"github.com/tenure-dev/tenure/tools/dashtest/dashboard"
)

// timeline draws a bar for each series, in the colours of the states that it was in. Where it has
// no value there is no bar.
func (c *canvas) timeline(p Picture, panel Panel, area image.Rectangle) {
	names := 0
	for _, s := range panel.Series {
		names = max(names, width(c.faces.label, s.Name))
	}
	c.states(panel.Field.Defaults.Mappings, area)
	plot := image.Rect(area.Min.X+names+12, area.Min.Y+2, area.Max.X-6, area.Max.Y-axisHeight-legendLine)
	c.timeAxis(p, plot)
	c.fill(image.Rect(plot.Min.X, plot.Max.Y, plot.Max.X, plot.Max.Y+1), border)
	if len(panel.Series) == 0 {
		c.text(c.faces.label, faint, (plot.Min.X+plot.Max.X)/2, (plot.Min.Y+plot.Max.Y)/2, missing)
		return
	}
	high := float64(plot.Dy()) / float64(len(panel.Series))
	for i, s := range panel.Series {
		top := float64(plot.Min.Y) + float64(i)*high
		bar := image.Rect(plot.Min.X, int(top+high*.12), plot.Max.X, int(top+high*.88))
		c.textRight(c.faces.label, dark, plot.Min.X-10, (bar.Min.Y+bar.Max.Y)/2+4, s.Name)
		for _, pt := range s.Points {
			if math.IsNaN(pt.Value) {
				continue
			}
			from, to := p.x(plot, pt.At), p.x(plot, pt.At.Add(p.Step))
			part := image.Rect(int(math.Round(from)), bar.Min.Y, int(math.Round(to)), bar.Max.Y)
			c.fill(part.Intersect(plot), state(panel.Field.Defaults.Mappings, pt.Value))
		}
	}
}

// states writes what the colours mean at the bottom of area.
func (c *canvas) states(mappings []dashboard.Mapping, area image.Rectangle) {
	x, y := area.Min.X, area.Max.Y-2
	for _, m := range mappings {
		texts := make([]dashboard.MappingText, len(m.Options))
		for _, t := range m.Options {
			if t.Index >= 0 && t.Index < len(texts) {
				texts[t.Index] = t
			}
		}
		for _, t := range texts {
			c.fill(image.Rect(x, y-9, x+12, y), ink(t.Color))
			c.text(c.faces.small, dark, x+16, y, t.Text)
			x += 16 + width(c.faces.small, t.Text) + 14
		}
	}
	c.text(c.faces.small, faint, x, y, "blank: not scraped")
}

// state is the colour of a value.
func state(mappings []dashboard.Mapping, value float64) color.RGBA {
	for _, m := range mappings {
		if t, ok := m.Options[strconv.FormatFloat(value, 'f', -1, 64)]; ok {
			return ink(t.Color)
		}
	}
	return faint
}
