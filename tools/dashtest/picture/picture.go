// Package picture draws a dashboard's panels with what a Prometheus answered. It is not Grafana: it
// draws the kinds of panels that the dashboard of this module has, plainly.
package picture

import (
	"fmt"
	"image"
	"image/png"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/tools/dashtest/dashboard"
	"github.com/tenure-dev/tenure/tools/dashtest/prometheus"
)

// Picture is a dashboard with its data.
type Picture struct {
	Title      string
	Caption    string
	Start, End time.Time
	Step       time.Duration
	Panels     []Panel
}

// Panel is a panel with its data.
type Panel struct {
	dashboard.Panel
	Series []Series
}

// Series is a line of a panel.
type Series struct {
	Name   string
	Points []prometheus.Point
}

// Sizes in pixels.
const (
	column = 66
	unit   = 29 // of height on the grid
	margin = 18
	gap    = 8
	header = 64
)

// Draw writes the picture as a PNG.
func Draw(w io.Writer, p Picture) error {
	bottom := 0
	for _, panel := range p.Panels {
		bottom = max(bottom, panel.Grid.Y+panel.Grid.H)
	}
	c, err := newCanvas(2*margin+dashboard.Columns*column, header+bottom*unit+margin)
	if err != nil {
		return err
	}
	c.text(c.faces.head, dark, margin+gap/2, 30, p.Title)
	c.text(c.faces.label, faint, margin+gap/2, 51, p.Caption)
	for _, panel := range p.Panels {
		c.panel(p, panel)
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(w, reduce(c.RGBA)); err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	return nil
}

// panel draws a panel, or the title of a row.
func (c *canvas) panel(p Picture, panel Panel) {
	g := panel.Grid
	area := image.Rect(margin+g.X*column+gap/2, header+g.Y*unit+gap/2, margin+(g.X+g.W)*column-gap/2, header+(g.Y+g.H)*unit-gap/2)
	if panel.Type == "row" {
		c.text(c.faces.row, dark, area.Min.X, area.Max.Y-4, panel.Title)
		return
	}
	c.fill(area, sheet)
	c.frame(area, border)
	inner := area.Inset(10)
	c.text(c.faces.title, dark, inner.Min.X, inner.Min.Y+11, fit(c.faces.title, panel.Title, inner.Dx()))
	inner.Min.Y += 20
	slices.SortStableFunc(panel.Series, func(a, b Series) int { return strings.Compare(a.Name, b.Name) })
	switch panel.Type {
	case "timeseries":
		c.chart(p, panel, inner)
	case "state-timeline":
		c.timeline(p, panel, inner)
	case "stat":
		c.stat(panel, inner)
	}
}

// timeAxis writes the times below area and draws their lines through it.
func (c *canvas) timeAxis(p Picture, area image.Rectangle) {
	for _, t := range timeTicks(p.Start, p.End, min(area.Dx()/75, 11)) {
		x := int(p.x(area, t))
		text := clock(t)
		half := width(c.faces.small, text) / 2
		if x-half < area.Min.X-12 || x+half > area.Max.X+10 {
			continue
		}
		c.fill(image.Rect(x, area.Min.Y, x+1, area.Max.Y), grid)
		c.text(c.faces.small, faint, x-half, area.Max.Y+15, text)
	}
}

// x is the place of an instant.
func (p Picture) x(area image.Rectangle, t time.Time) float64 {
	return float64(area.Min.X) + float64(area.Dx())*float64(t.Sub(p.Start))/float64(p.End.Sub(p.Start))
}
