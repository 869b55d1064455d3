package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/harness/report"
)

// Archive is the directory with everything that is known of a run.
type Archive struct{ dir string }

// Account is what is known of any run besides its journals. Programs add to it.
type Account struct {
	report.Run
	Leftover []string        `json:"leftover"` // keys that are on servers and must not be
	Failures []string        `json:"failures"` // what did not work in the end
	Over     history.Instant `json:"over"`     // when the faults were over
}

const (
	strikesName = "strikes" // journals beside those of the clients
	livesName   = "lives"
	accountName = "account.json"
)

// newArchive makes a directory, a temporary one if it is not named.
func newArchive(program, dir string) (*Archive, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", program+"-")
	} else {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("no directory for the journals: %w", err)
	}
	return &Archive{dir: dir}, nil
}

// Clients is the directory of the clients' journals.
func (a *Archive) Clients() string { return filepath.Join(a.dir, "clients") }

// Create begins a journal beside those of the clients.
func (a *Archive) Create(name string) (*history.Writer, error) { return history.Create(a.dir, name) }

// CreateStrikes begins the journal of the faults.
func (a *Archive) CreateStrikes() (*history.Writer, error) { return a.Create(strikesName) }

// Close writes what is known in the end. The account embeds an Account.
func (a *Archive) Close(lives []history.Life, account any) error {
	w, err := a.Create(livesName)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, life := range lives {
		if err := w.Append(life); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(account, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.dir, accountName), text, 0o600)
}

// Account reads the account of the run.
func (a *Archive) Account(into any) error {
	text, err := os.ReadFile(filepath.Join(a.dir, accountName))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("no account of a run in %s: %w", a.dir, err)
	}
	return nil
}

// Read reads a journal beside those of the clients.
func Read[R any](a *Archive, name string) ([]R, error) {
	return history.Read[R](filepath.Join(a.dir, name+history.Suffix))
}

// ReadRun reads what every run leaves: the records of the clients by the names of their lives,
// these, and the faults.
func ReadRun[R, S any](a *Archive) (records map[string][]R, lives []history.Life, strikes []S, err error) {
	if records, err = history.ReadAll[R](a.Clients()); err != nil {
		return nil, nil, nil, err
	}
	if lives, err = Read[history.Life](a, livesName); err != nil {
		return nil, nil, nil, err
	}
	strikes, err = Read[S](a, strikesName)
	return records, lives, strikes, err
}

func (a *Archive) remove() error { return os.RemoveAll(a.dir) }
