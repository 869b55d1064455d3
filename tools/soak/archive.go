package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/soak/cast"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/story"
	"github.com/tenure-dev/tenure/tools/soak/verdict"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// archive is the directory with everything that is known of a soak.
type archive struct{ dir string }

// account is what is known of a soak besides its journals.
type account struct {
	Command  string          `json:"command"` // that repeats it
	Seed     uint64          `json:"seed"`
	Topology string          `json:"topology"`
	Duration string          `json:"duration"`
	Leftover []string        `json:"leftover"`
	Failures []string        `json:"failures"`
	Over     journal.Instant `json:"over"`
	OverAt   int64           `json:"over_at"`
	Halted   bool            `json:"halted"`
}

const (
	strikesName = "strikes" // journals beside those of the replicas
	livesName   = "lives"
	accountName = "account.json"
)

func newArchive(dir string) (*archive, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "soak-")
	} else {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("no directory for the journals: %w", err)
	}
	return &archive{dir: dir}, nil
}

func (a *archive) create(name string) (*journal.Writer, error) { return journal.Create(a.dir, name) }

// close writes what is known in the end.
func (a *archive) close(lives []journal.Life, acc account) error {
	w, err := a.create(livesName)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, life := range lives {
		if err := w.Append(life); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(acc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.dir, accountName), text, 0o600)
}

// read returns the history that the archive holds.
func (a *archive) read() (*verdict.History, account, error) {
	var acc account
	text, err := os.ReadFile(filepath.Join(a.dir, accountName))
	if err == nil {
		err = json.Unmarshal(text, &acc)
	}
	if err != nil {
		return nil, acc, fmt.Errorf("no account of a soak in %s: %w", a.dir, err)
	}
	topology, err := plan.Find(acc.Topology)
	if err != nil {
		return nil, acc, fmt.Errorf("the account of a soak in %s: %w", a.dir, err)
	}
	h := &verdict.History{Jobs: work.Jobs(), Servers: topology.Servers, Leftover: acc.Leftover, Failures: acc.Failures, Over: acc.Over, Halted: acc.Halted, OverAt: acc.OverAt}
	if h.Records, err = cast.Journals(a.dir, plan.Replicas); err != nil {
		return nil, acc, err
	}
	path := func(name string) string { return filepath.Join(a.dir, name+journal.Suffix) }
	if h.Lives, err = journal.Read[journal.Life](path(livesName)); err != nil {
		return nil, acc, err
	}
	if h.Strikes, err = journal.Read[story.Strike](path(strikesName)); err != nil {
		return nil, acc, err
	}
	return h, acc, nil
}

func (a *archive) remove() error { return os.RemoveAll(a.dir) }
