package picture

import (
	"image"
	"image/color"
	"slices"
)

// reduce returns the image with a palette of at most 256 colours, which makes the file a third of
// the size. Smooth edges have many colours that hardly differ: the rarer ones become the nearest of
// the others.
func reduce(full *image.RGBA) image.Image {
	counts := make(map[color.RGBA]int)
	runs(full, func(c color.RGBA, from, to int) { counts[c] += to - from })
	colours := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return int(key(a)) - int(key(b))
	})
	var kept color.Palette
	for _, c := range colours[:min(len(colours), 256)] {
		kept = append(kept, c)
	}
	reduced := image.NewPaletted(full.Bounds(), kept)
	nearest := make(map[color.RGBA]uint8, len(counts))
	for _, c := range colours {
		nearest[c] = uint8(kept.Index(c))
	}
	runs(full, func(c color.RGBA, from, to int) {
		index := nearest[c]
		for i := from; i < to; i++ {
			reduced.Pix[i] = index
		}
	})
	return reduced
}

// runs calls found for each run of pixels of one colour, from and to being numbers of pixels. The
// image has no gaps between its lines.
func runs(full *image.RGBA, found func(c color.RGBA, from, to int)) {
	at := func(i int) color.RGBA {
		p := full.Pix[4*i : 4*i+4 : 4*i+4]
		return color.RGBA{p[0], p[1], p[2], p[3]}
	}
	pixels := len(full.Pix) / 4
	for from := 0; from < pixels; {
		c, to := at(from), from+1
		for to < pixels && at(to) == c {
			to++
		}
		found(c, from, to)
		from = to
	}
}

func key(c color.RGBA) uint32 { return uint32(c.R)<<16 | uint32(c.G)<<8 | uint32(c.B) }
