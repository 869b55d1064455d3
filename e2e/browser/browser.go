// Package browser drives a real headless Chromium for tests. Pages collect the complaints of their
// consoles. Tests can wait for conditions, click and type as a person does, take screenshots, and
// check accessibility with axe-core.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/chromedp"
)

// ProgramVariable names the browser if it is not called chromium.
const ProgramVariable = "TENURE_CHROMIUM"

const (
	// Patience is how long a test waits for a result that normally comes much sooner: the machine
	// may be six times too slow.
	Patience = time.Minute
	// poll is the pause between two looks at a page.
	poll = 25 * time.Millisecond
)

// shared starts Chromium at its first call, and returns the context of the first tab, which stays
// empty.
var shared = sync.OnceValues(start)

// end ends Chromium, if it was started.
var end atomic.Value // of func()

// start starts Chromium without a window, and without features that use the network by themselves.
func start() (context.Context, error) {
	program := os.Getenv(ProgramVariable)
	if program == "" {
		program = "chromium"
	}
	file, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("browser: there is no %s: `scripts/install.sh chromium` installs it, and %s names another one: %w", program, ProgramVariable, err)
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(file), chromedp.DisableGPU, chromedp.WSURLReadTimeout(Patience), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("mute-audio", true), chromedp.Flag("lang", "en-GB"))
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox) // Chromium's sandbox refuses to run as root
	}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, cancel := chromedp.NewContext(allocated)
	end.Store(func() {
		cancel()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("browser: %s does not start: %w", file, err)
	}
	return ctx, nil
}

// Close ends the browser of this process, if there is one.
func Close() {
	if end, started := end.Load().(func()); started {
		end()
	}
}
