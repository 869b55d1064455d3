package picture_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/dashtest/dashboard"
	"github.com/tenure-dev/tenure/tools/dashtest/picture"
	"github.com/tenure-dev/tenure/tools/dashtest/prometheus"
)

const seconds = 60

var begin = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

// series has the values from begin on, one a second.
func series(name string, values ...float64) picture.Series {
	s := picture.Series{Name: name}
	for i, v := range values {
		s.Points = append(s.Points, prometheus.Point{At: begin.Add(time.Duration(i) * time.Second), Value: v})
	}
	return s
}

// constant is a value for a minute.
func constant(v float64) []float64 {
	values := make([]float64, seconds)
	for i := range values {
		values[i] = v
	}
	return values
}

// drawn draws one panel over the whole width.
func drawn(t *testing.T, p picture.Panel) image.Image {
	t.Helper()
	p.Grid = dashboard.Grid{W: dashboard.Columns, H: 8}
	var file bytes.Buffer
	require.NoError(t, picture.Draw(&file, picture.Picture{
		Title: "a title", Caption: "a caption", Start: begin, End: begin.Add(seconds * time.Second), Step: time.Second, Panels: []picture.Panel{p},
	}))
	decoded, err := png.Decode(&file)
	require.NoError(t, err)
	return decoded
}

// area counts the pixels of a colour, or nearly so, and returns the rectangle around them.
func area(t *testing.T, img image.Image, c color.RGBA) (count int, around image.Rectangle) {
	t.Helper()
	paletted, ok := img.(*image.Paletted)
	require.True(t, ok)
	near := make(map[uint8]bool)
	for i, p := range paletted.Palette {
		r, g, b, _ := p.RGBA()
		if distance(r>>8, c.R)+distance(g>>8, c.G)+distance(b>>8, c.B) < 90 {
			near[uint8(i)] = true
		}
	}
	for i, index := range paletted.Pix {
		if near[index] {
			x, y := i%paletted.Stride, i/paletted.Stride
			count++
			around = around.Union(image.Rect(x, y, x+1, y+1))
		}
	}
	return count, around
}

func distance(a uint32, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

var (
	first = color.RGBA{0x1f, 0x77, 0xb4, 0xff}
	green = color.RGBA{0x37, 0x9e, 0x4f, 0xff}
	red   = color.RGBA{0xd6, 0x3a, 0x3a, 0xff}
)

func panel(kind string) picture.Panel {
	p := picture.Panel{}
	p.Type, p.Title = kind, "a panel"
	return p
}

func TestALineGoesThroughItsValues(t *testing.T) {
	low, high := panel("timeseries"), panel("timeseries")
	low.Series = []picture.Series{series("a", append(constant(1), 10)...)}
	high.Series = []picture.Series{series("a", append(constant(9), 10)...)}
	_, under := area(t, drawn(t, low), first)
	_, over := area(t, drawn(t, high), first)
	assert.Greater(t, under.Dx(), 1000, "the line is as wide as the panel")
	assert.Less(t, over.Min.Y+over.Dy()/4, under.Max.Y)

	holes := panel("timeseries")
	values := constant(1)
	for i := 20; i < 40; i++ {
		values[i] = math.NaN()
	}
	holes.Series = []picture.Series{series("a", values...)}
	whole, _ := area(t, drawn(t, panelOf(constant(1))), first)
	part, _ := area(t, drawn(t, holes), first)
	assert.InDelta(t, 2.0/3, float64(part)/float64(whole), 0.1, "a line is interrupted where there is no number")
}

func panelOf(values []float64) picture.Panel {
	p := panel("timeseries")
	p.Series = []picture.Series{series("a", values...)}
	return p
}

func TestBarsPointsStepsAndLogarithms(t *testing.T) {
	for _, change := range []func(*picture.Panel){
		func(p *picture.Panel) { p.Field.Defaults.Custom.DrawStyle = "points" },
		func(p *picture.Panel) { p.Field.Defaults.Custom.LineInterpolation = "stepAfter" },
		func(p *picture.Panel) { p.Field.Defaults.Custom.FillOpacity = 20 },
		func(p *picture.Panel) { p.Field.Defaults.Custom.Scale.Type = "log"; p.Field.Defaults.Unit = "s" },
	} {
		p := panelOf(append(constant(0.003), 4, 0, math.Inf(1)))
		change(&p)
		count, _ := area(t, drawn(t, p), first)
		assert.Greater(t, count, 400)
	}
	stacked := panelOf(constant(2))
	stacked.Field.Defaults.Custom.DrawStyle = "bars"
	stacked.Field.Defaults.Custom.Stacking.Mode = "normal"
	stacked.Series = append(stacked.Series, series("b", constant(1)...))
	img := drawn(t, stacked)
	lower, _ := area(t, img, color.RGBA{0x57, 0x99, 0xc6, 0xff})
	upper, _ := area(t, img, color.RGBA{0xed, 0x90, 0x3f, 0xff})
	assert.InDelta(t, 2, float64(lower)/float64(upper), 0.3, "twice as high")
}

func TestATimelineShowsStates(t *testing.T) {
	p := panel("state-timeline")
	p.Field.Defaults.Mappings = []dashboard.Mapping{{Options: map[string]dashboard.MappingText{
		"0": {Text: "follows", Color: "red", Index: 0}, "1": {Text: "leads", Color: "green", Index: 1},
	}}}
	values := constant(0)
	for i := 40; i < 60; i++ {
		values[i] = 1
	}
	p.Series = []picture.Series{series("a", values...)}
	img := drawn(t, p)
	follows, early := area(t, img, red)
	leads, late := area(t, img, green)
	assert.InDelta(t, 2, float64(follows)/float64(leads), 0.2)
	assert.Less(t, early.Min.X, late.Min.X+20)
	p.Series = nil
	_ = drawn(t, p)
}

func TestAStatHasTheColourOfItsThreshold(t *testing.T) {
	one := 1.0
	p := panel("stat")
	p.Field.Defaults.Thresholds.Steps = []dashboard.Step{{Color: "red"}, {Color: "green", Value: &one}}
	p.Series = []picture.Series{series("a", 1)}
	count, _ := area(t, drawn(t, p), green)
	assert.Greater(t, count, 20)
	p.Series = []picture.Series{series("a", 0)}
	count, _ = area(t, drawn(t, p), red)
	assert.Greater(t, count, 20)
	for _, none := range [][]picture.Series{nil, {series("a")}, {series("a", math.NaN())}} {
		p.Series, p.Field.Defaults.NoValue = none, "nobody"
		_ = drawn(t, p)
	}
}

func TestNamesThatDoNotFit(t *testing.T) {
	p := panelOf(constant(1))
	for range 200 {
		p.Series = append(p.Series, series("a very long name of a series that goes on and on", 1))
	}
	p.Title = string(bytes.Repeat([]byte("title "), 200))
	_ = drawn(t, p)
	_ = drawn(t, panel("timeseries"))
	_ = drawn(t, panel("row"))
}
