package history

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The files of a run, besides the journals of its clients.
const (
	clientsName = "clients"
	livesName   = "lives"
	strikesName = "strikes"
	accountName = "account.json"
)

// History is all that is known of a run.
type History struct {
	Account
	Records map[string][]Record // by the name of the life
	Lives   []Life
	Strikes []Strike
}

// Clients is the directory of the clients' journals in that of a run.
func Clients(dir string) string { return filepath.Join(dir, clientsName) }

// CreateStrikes begins the journal of the faults.
func CreateStrikes(dir string) (*Writer, error) { return Create(dir, strikesName) }

// Close writes what is known in the end.
func Close(dir string, lives []Life, account Account) error {
	w, err := Create(dir, livesName)
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
	return os.WriteFile(filepath.Join(dir, accountName), text, 0o600)
}

// Open reads a run.
func Open(dir string) (h *History, err error) {
	h = &History{}
	text, err := os.ReadFile(filepath.Join(dir, accountName))
	if err == nil {
		err = json.Unmarshal(text, &h.Account)
	}
	if err != nil {
		return nil, fmt.Errorf("no account of a run in %s: %w", dir, err)
	}
	if h.Records, err = ReadAll[Record](Clients(dir)); err != nil {
		return nil, err
	}
	if h.Lives, err = Read[Life](filepath.Join(dir, livesName+Suffix)); err != nil {
		return nil, err
	}
	h.Strikes, err = Read[Strike](filepath.Join(dir, strikesName+Suffix))
	return h, err
}
