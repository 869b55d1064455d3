package picture

import (
	"image"
	"image/color"
	"math"
	"time"
)

const (
	axisWidth  = 52 // of the values
	axisHeight = 20 // of the times
	legendLine = 16
	missing    = "no data"
)

// chart draws series over time: lines, bars on each other, or points.
func (c *canvas) chart(p Picture, panel Panel, area image.Rectangle) {
	lines := c.legend(panel, area)
	plot := image.Rect(area.Min.X+axisWidth, area.Min.Y+4, area.Max.X-6, area.Max.Y-axisHeight-lines*legendLine)
	custom := panel.Field.Defaults.Custom
	axis := newAxis(panel, plot)
	y := axis.at
	c.timeAxis(p, plot)
	for i, v := range axis.marks {
		at := int(math.Round(y(v)))
		c.fill(image.Rect(plot.Min.X, at, plot.Max.X, at+1), grid)
		c.textRight(c.faces.small, faint, plot.Min.X-6, at+4, format(panel.Field.Defaults.Unit, v, axis.spread(i)))
	}
	c.fill(image.Rect(plot.Min.X, plot.Max.Y, plot.Max.X, plot.Max.Y+1), border)
	clip := plot.Inset(-4)
	switch custom.DrawStyle {
	case "bars":
		c.bars(p, panel, plot, clip, y)
	case "points":
		for i, s := range panel.Series {
			for _, pt := range s.Points {
				if !math.IsNaN(pt.Value) {
					c.dot(clip, palette[i%len(palette)], point{p.x(plot, pt.At), y(pt.Value)}, 3.5)
				}
			}
		}
	default:
		for i, s := range panel.Series {
			c.lines(p, s, palette[i%len(palette)], plot, clip, y, custom.LineInterpolation == "stepAfter", custom.FillOpacity)
		}
	}
}

// lines draws one series. It is interrupted where there is no value.
func (c *canvas) lines(
	p Picture, s Series, ink color.RGBA, plot, clip image.Rectangle, y func(float64) float64, steps bool, fill int,
) {
	var run []point
	end := func() {
		switch {
		case len(run) == 1:
			c.dot(clip, ink, run[0], 2)
		case len(run) > 1:
			if fill > 0 {
				base := float64(plot.Max.Y)
				shape := append([]point{{run[0].x, base}}, run...)
				translucent := color.NRGBA{ink.R, ink.G, ink.B, uint8(fill * 255 / 100)}
				c.polygon(clip, translucent, append(shape, point{run[len(run)-1].x, base})...)
			}
			c.line(clip, ink, 1.8, run)
		}
		run = nil
	}
	var last time.Time
	for _, pt := range s.Points {
		if math.IsNaN(pt.Value) || math.IsInf(pt.Value, 0) || len(run) > 0 && pt.At.Sub(last) > p.Step+p.Step/2 {
			end()
		}
		if math.IsNaN(pt.Value) || math.IsInf(pt.Value, 0) {
			continue
		}
		next := point{p.x(plot, pt.At), y(pt.Value)}
		if steps && len(run) > 0 {
			run = append(run, point{next.x, run[len(run)-1].y})
		}
		run = append(run, next)
		last = pt.At
	}
	end()
}

// bars draws the series on each other.
func (c *canvas) bars(p Picture, panel Panel, plot, clip image.Rectangle, y func(float64) float64) {
	heights := make(map[time.Time]float64)
	wide := float64(plot.Dx()) * float64(p.Step) / float64(p.End.Sub(p.Start))
	for i, s := range panel.Series {
		for _, pt := range s.Points {
			if math.IsNaN(pt.Value) || pt.Value <= 0 {
				continue
			}
			from := heights[pt.At]
			heights[pt.At] = from + pt.Value
			x := p.x(plot, pt.At)
			c.polygon(clip, pale(palette[i%len(palette)], 75), point{x - wide/2, y(from)}, point{x - wide/2, y(from + pt.Value)},
				point{x + wide/2 - 1, y(from + pt.Value)}, point{x + wide/2 - 1, y(from)})
		}
	}
}
