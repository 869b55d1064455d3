package browser

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Directory is where pictures are kept for people to look at, relative to the top of the
// repository.
const Directory = "bin/e2e"

// Picture writes a PNG of the tab into Directory: of the whole page, or of the visible part.
func (p *Page) Picture(name string, whole bool) {
	p.tb.Helper()
	require.NoError(p.tb, p.write(name, whole))
}

func (p *Page) write(name string, whole bool) error {
	png, err := p.png(whole)
	directory := filepath.Join(Root(p.tb), Directory)
	if err = errors.Join(err, os.MkdirAll(directory, 0o755)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, name+".png"), png, 0o644)
}

// PNG returns a picture of the tab: of the whole page, or of the visible part.
func (p *Page) PNG(whole bool) []byte {
	p.tb.Helper()
	png, err := p.png(whole)
	require.NoError(p.tb, err)
	return png
}

// tallest is the maximum height of a picture of the whole page, in CSS pixels.
const tallest = 3000

func (p *Page) png(whole bool) ([]byte, error) {
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
	if whole {
		size, err := evaluate[[2]float64](p, "[document.documentElement.clientWidth, Math.max(document.documentElement.scrollHeight, innerHeight)]")
		if err != nil {
			return nil, err
		}
		params.CaptureBeyondViewport = &whole
		params.Clip = &page.Viewport{Width: size[0], Height: min(size[1], tallest), Scale: 1}
	}
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	result, err := chromedp.Call(ctx, page.CaptureScreenshot, params)
	return result.Data, err
}

// keep writes a picture of a page on which a test has failed.
func (p *Page) keep() {
	name := "failed-" + strings.NewReplacer("/", "-", " ", "-").Replace(p.tb.Name())
	err := p.write(name, false)
	p.tb.Logf("a picture of the page: %s.png in %s (%v)", name, Directory, err)
}
