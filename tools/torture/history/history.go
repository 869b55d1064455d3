package history

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// accountName is the file of a run besides the journals of its clients.
const accountName = "account.json"

// History is all that is known of a run.
type History struct {
	Account
	Records map[string][]Record // by the name of the life
}

// Clients is the directory of the clients' journals in that of a run.
func Clients(dir string) string { return filepath.Join(dir, "clients") }

// Write writes what is known in the end.
func (a Account) Write(dir string) error {
	text, err := json.MarshalIndent(a, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, accountName), text, 0o600)
}

// Open reads a run.
func Open(dir string) (*History, error) {
	var a Account
	text, err := os.ReadFile(filepath.Join(dir, accountName))
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return nil, fmt.Errorf("no account of a run in %s: %w", dir, err)
	}
	return a.Of(dir)
}

// Of reads the journals of a run, which may go on.
func (a Account) Of(dir string) (h *History, err error) {
	h = &History{Account: a}
	h.Records, err = ReadAll[Record](Clients(dir))
	return h, err
}
