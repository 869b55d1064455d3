package picture

import (
	"fmt"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
)

// faces are the sizes of type that are used. They are for one goroutine.
type faces struct {
	small, label, title, row, head, value font.Face
}

func newFaces() (*faces, error) {
	regular, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	bold, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	f := &faces{}
	for _, size := range []struct {
		face   *font.Face
		font   *opentype.Font
		points float64
	}{
		{&f.small, regular, 11}, {&f.label, regular, 12}, {&f.title, bold, 13},
		{&f.row, bold, 16}, {&f.head, bold, 22}, {&f.value, bold, 34},
	} {
		*size.face, err = opentype.NewFace(size.font, &opentype.FaceOptions{Size: size.points, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			return nil, fmt.Errorf("picture: %w", err)
		}
	}
	return f, nil
}
