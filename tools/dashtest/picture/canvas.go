package picture

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// canvas is the picture while it is drawn. Coordinates are pixels from the upper left corner.
type canvas struct {
	*image.RGBA
	faces *faces
}

// point is a place on the canvas.
type point struct{ x, y float64 }

func newCanvas(width, height int) (*canvas, error) {
	f, err := newFaces()
	if err != nil {
		return nil, err
	}
	c := &canvas{RGBA: image.NewRGBA(image.Rect(0, 0, width, height)), faces: f}
	c.fill(c.Bounds(), paper)
	return c, nil
}

func (c *canvas) fill(r image.Rectangle, ink color.Color) {
	draw.Draw(c.RGBA, r, image.NewUniform(ink), image.Point{}, draw.Over)
}

// frame draws the border of r, inside of it.
func (c *canvas) frame(r image.Rectangle, ink color.Color) {
	c.fill(image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+1), ink)
	c.fill(image.Rect(r.Min.X, r.Max.Y-1, r.Max.X, r.Max.Y), ink)
	c.fill(image.Rect(r.Min.X, r.Min.Y, r.Min.X+1, r.Max.Y), ink)
	c.fill(image.Rect(r.Max.X-1, r.Min.Y, r.Max.X, r.Max.Y), ink)
}

// polygon fills a polygon, with smooth edges, as far as it is inside clip.
func (c *canvas) polygon(clip image.Rectangle, ink color.Color, corners ...point) {
	if len(corners) < 3 {
		return
	}
	clip = clip.Intersect(around(corners))
	if clip.Empty() {
		return
	}
	z := vector.NewRasterizer(clip.Dx(), clip.Dy())
	z.DrawOp = draw.Over
	move := func(p point) (float32, float32) {
		return float32(p.x - float64(clip.Min.X)), float32(p.y - float64(clip.Min.Y))
	}
	z.MoveTo(move(corners[0]))
	for _, p := range corners[1:] {
		z.LineTo(move(p))
	}
	z.ClosePath()
	z.Draw(c.RGBA, clip, image.NewUniform(ink), image.Point{})
}

// around is the rectangle around points.
func around(points []point) image.Rectangle {
	left, top, right, bottom := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, p := range points {
		left, top, right, bottom = min(left, p.x), min(top, p.y), max(right, p.x), max(bottom, p.y)
	}
	return image.Rect(int(math.Floor(left)), int(math.Floor(top)), int(math.Ceil(right)), int(math.Ceil(bottom)))
}

// line draws a line through points, as far as it is inside clip.
func (c *canvas) line(clip image.Rectangle, ink color.Color, width float64, points []point) {
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		length := math.Hypot(b.x-a.x, b.y-a.y)
		if length == 0 {
			continue
		}
		// Half a width longer at both ends, so that the parts join.
		ux, uy := (b.x-a.x)/length*width/2, (b.y-a.y)/length*width/2
		ex, ey := ux/2, uy/2
		c.polygon(clip, ink,
			point{a.x - ex - uy, a.y - ey + ux}, point{b.x + ex - uy, b.y + ey + ux},
			point{b.x + ex + uy, b.y + ey - ux}, point{a.x - ex + uy, a.y - ey - ux})
	}
}

// dot draws a filled circle.
func (c *canvas) dot(clip image.Rectangle, ink color.Color, at point, radius float64) {
	const corners = 16
	circle := make([]point, corners)
	for i := range circle {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		circle[i] = point{at.x + radius*cos, at.y + radius*sin}
	}
	c.polygon(clip, ink, circle...)
}

// text writes a text whose baseline begins at x, y.
func (c *canvas) text(face font.Face, ink color.Color, x, y int, text string) {
	d := font.Drawer{Dst: c.RGBA, Src: image.NewUniform(ink), Face: face, Dot: fixed.P(x, y)}
	d.DrawString(text)
}

// textRight writes a text that ends at x.
func (c *canvas) textRight(face font.Face, ink color.Color, x, y int, text string) {
	c.text(face, ink, x-width(face, text), y, text)
}

func width(face font.Face, text string) int { return font.MeasureString(face, text).Ceil() }

// fit shortens a text to a width.
func fit(face font.Face, text string, limit int) string {
	if width(face, text) <= limit {
		return text
	}
	letters := []rune(text)
	for len(letters) > 0 && width(face, string(letters)+"...") > limit {
		letters = letters[:len(letters)-1]
	}
	return string(letters) + "..."
}
