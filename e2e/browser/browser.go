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

// Browser is a Chromium process. It is safe for concurrent use.
type Browser struct {
	ctx   context.Context // context of the first tab, which stays empty
	close func()
}

var shared = sync.OnceValues(start)

var started struct {
	sync.Mutex
	browser *Browser // guarded by mu
}

// start starts Chromium without a window, and without features that use the network by themselves.
func start() (*Browser, error) {
	program := os.Getenv(ProgramVariable)
	if program == "" {
		program = "chromium"
	}
	file, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("browser: there is no %s: `make chromium` installs it, and %s names another one: %w", program, ProgramVariable, err)
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(file), chromedp.DisableGPU, chromedp.WSURLReadTimeout(Patience), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("mute-audio", true), chromedp.Flag("lang", "en-GB"))
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox) // Chromium's sandbox refuses to run as root
	}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, cancel := chromedp.NewContext(allocated)
	b := &Browser{ctx: ctx, close: func() {
		cancel()
		stop()
	}}
	if err := chromedp.Do(ctx); err != nil {
		b.close()
		return nil, fmt.Errorf("browser: %s does not start: %w", file, err)
	}
	started.Lock()
	defer started.Unlock()
	started.browser = b
	return b, nil
}

// Close ends the browser of this process, if there is one.
func Close() {
	started.Lock()
	defer started.Unlock()
	if started.browser != nil {
		started.browser.close()
		started.browser = nil
	}
}
