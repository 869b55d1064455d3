package main

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/tenure-dev/tenure/tools/dashtest/picture"
)

// draw draws the panels to a file.
func (l *live) draw(file string, panels []picture.Panel) error {
	var png bytes.Buffer
	err := picture.Draw(&png, picture.Picture{
		Title: l.dashboard.Title,
		Caption: fmt.Sprintf("%s to %s UTC. Drawn by tools/dashtest from the answers of a Prometheus "+
			"that scraped examples/observability every %v. The leader is killed every %v and started again, a node restarted every %v.",
			l.start.UTC().Format(time.DateTime), l.end.UTC().Format(time.TimeOnly), scrapeEvery, killEvery, restartEvery),
		Start: l.start, End: l.end, Step: step, Panels: panels,
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, png.Bytes(), 0o644); err != nil {
		return fmt.Errorf("dashtest: %w", err)
	}
	return nil
}
