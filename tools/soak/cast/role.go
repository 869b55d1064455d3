package cast

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/soak/story"
)

// Role is what a replica process knows of itself.
type Role struct {
	Name    string // of this life: r3.2
	Number  int
	Logger  *slog.Logger
	journal *journal.Writer
	setting []byte
}

// Settings reads the settings that New was given for the replica.
func (r *Role) Settings(into any) error { return json.Unmarshal(r.setting, into) }

// Append writes a record to the journal of this life. What cannot be written ends the process: it could not be judged.
func (r *Role) Append(record story.Record) {
	if record.At == 0 {
		record.At = journal.Now()
	}
	if err := r.journal.Append(record); err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

// Main is a replica process. It plays its role until it is told to stop, then calls what play returned, and writes down which
// goroutines are left. It returns the exit status: 0 if it was stopped in order.
func Main(in io.Reader, out io.Writer, play func(*Role) (stop func() error, err error)) int {
	if err := perform(in, out, play); err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		return 1
	}
	return 0
}

func perform(in io.Reader, out io.Writer, play func(*Role) (func() error, error)) (err error) {
	input := bufio.NewReader(in)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no assignment: this process is started by the soak program: %w", err)
	}
	var job client.Assignment
	if err := json.Unmarshal(line, &job); err != nil {
		return fmt.Errorf("assignment: %w", err)
	}
	r := &Role{}
	if _, err := fmt.Sscanf(filepath.Base(job.Journals), "r%d", &r.Number); err != nil {
		return fmt.Errorf("assignment: %w", err)
	}
	r.Name = rename(r.Number, job.Name)
	if r.setting, err = os.ReadFile(filepath.Join(job.Journals, settingsName)); err != nil {
		return err
	}
	if r.journal, err = journal.Create(job.Journals, r.Name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.journal.Close()) }()
	log, err := os.Create(filepath.Join(job.Journals, r.Name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	r.Logger = slog.New(slog.NewTextHandler(log, nil))
	before := goleak.IgnoreCurrent()
	stop, err := play(r)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, client.Ready)
	if line, err := input.ReadString('\n'); err != nil || strings.TrimSpace(line) != client.Stop {
		return fmt.Errorf("orphaned, or told %q: %w", line, err)
	}
	r.Append(story.Record{Kind: story.Stopping})
	if err := stop(); err != nil {
		return err
	}
	last := story.Record{Kind: story.Stop}
	if err := goleak.Find(before); err != nil {
		last.Text = err.Error()
	}
	r.Append(last)
	return nil
}
