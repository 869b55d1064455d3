// Package cast starts, harms and ends the replica processes, with package crowd: each replica is a crowd of one, so that it can be ended in
// order by itself. None outlives this process, however that ends.
package cast

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/crowd"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/soak/story"
)

// Variable is set for replica processes: main has to call Main then.
const Variable = crowd.Variable

// Patience is how long a replica may take to stop in order: its stop timeout, and what the Quorum's Close waits for.
const Patience = 20 * time.Second

const settingsName = "settings.json"

// Cast is the replicas, numbered from zero. It is safe for concurrent use.
type Cast struct {
	crowds []*crowd.Crowd
}

// Environment is implemented by settings of a replica whose process has variables of its own, each
// as name=value.
type Environment interface{ Environment() []string }

// New makes a cast, each of whose replicas has a directory below dir for its journals, and settings that its process finds in its Role.
func New(replicas int, dir string, settings func(number int) any) (*Cast, error) {
	c := &Cast{}
	for number := range replicas {
		journals := filepath.Join(dir, fmt.Sprintf("r%d", number))
		if err := os.MkdirAll(journals, 0o700); err != nil {
			return nil, fmt.Errorf("cast: no directory for replica %d: %w", number, err)
		}
		told := settings(number)
		var environment []string
		if e, ok := told.(Environment); ok {
			environment = e.Environment()
		}
		text, err := json.Marshal(told)
		if err == nil {
			err = os.WriteFile(filepath.Join(journals, settingsName), text, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("cast: no settings for replica %d: %w", number, err)
		}
		c.crowds = append(c.crowds, crowd.New(1, func(int) client.Assignment { return client.Assignment{Journals: journals, Env: environment} }))
	}
	return c, nil
}

// all does something to all replicas at once.
func (c *Cast) all(do func(number int) error) error {
	errs := make([]error, len(c.crowds))
	var wg sync.WaitGroup
	for i := range c.crowds {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Start begins a life of a replica that is dead, and waits until it works.
func (c *Cast) Start(number int) error { return c.named(number, c.crowds[number].Start(0)) }

// StartAll starts all replicas that are dead.
func (c *Cast) StartAll() error { return c.all(c.Start) }

// Kill ends a replica with SIGKILL, and reports whether it was alive.
func (c *Cast) Kill(number int) bool { return c.crowds[number].Kill(0) }

// KillAll kills all replicas at once.
func (c *Cast) KillAll() {
	_ = c.all(func(number int) error { c.Kill(number); return nil })
}

// Freeze stops a replica with SIGSTOP, and reports whether it ran.
func (c *Cast) Freeze(number int) bool { return c.crowds[number].Freeze(0) }

// Thaw lets a frozen replica go on.
func (c *Cast) Thaw(number int) { c.crowds[number].Thaw(0) }

// Stop ends a replica in order. One that does not end in time is killed, and that is an error.
func (c *Cast) Stop(number int) error { return c.named(number, c.crowds[number].Stop(Patience)) }

// StopAll ends all replicas in order.
func (c *Cast) StopAll() error { return c.all(c.Stop) }

func (c *Cast) named(number int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("replica %d: %w", number, err)
}

// Close kills whoever is left, and returns all lives that there were.
func (c *Cast) Close() []journal.Life {
	var lives []journal.Life
	for number, crowd := range c.crowds {
		for _, life := range crowd.Close() {
			life.Name = rename(number, life.Name)
			lives = append(lives, life)
		}
	}
	return lives
}

// rename makes r3.2 of what the crowd of replica 3 calls c0.2.
func rename(number int, name string) string {
	_, life, _ := strings.Cut(name, ".")
	n, _ := strconv.Atoi(life)
	return story.LifeName(number, n)
}

// Journals returns the records of all replicas by the names of their lives.
func Journals(dir string, replicas int) (map[string][]story.Record, error) {
	all := make(map[string][]story.Record)
	for number := range replicas {
		some, err := journal.ReadAll[story.Record](filepath.Join(dir, fmt.Sprintf("r%d", number)))
		if err != nil {
			return nil, err
		}
		for name, records := range some {
			all[name] = records
		}
	}
	return all, nil
}
