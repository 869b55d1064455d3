// Package harnesstest is for tests of programs whose frame is package harness.
package harnesstest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/tools/harness"
	"github.com/tenure-dev/tenure/tools/harness/clients"
)

// Main is the TestMain of a package whose tests start clusters, and clients that begin so; nil if
// they start none.
func Main(m *testing.M, begin func(*clients.Process) (func() error, error)) {
	if os.Getenv(clients.Variable) != "" {
		os.Exit(clients.Main(os.Stdin, os.Stdout, begin))
	}
	// toxiproxy leaves the goroutines of a connection behind whose peer went away while bytes were
	// on their way to it: nobody receives what they have to pass on.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}

// CheckAgain has a program check the journals of a run of seed 3 again: as they are, and with a key
// that is left.
func CheckAgain(t *testing.T, program func(args []string, out io.Writer) int, journals string) {
	t.Helper()
	var out bytes.Buffer
	page := filepath.Join(t.TempDir(), "report.md")
	require.Equal(t, harness.ExitPass, program([]string{"-check", journals, "-report", page}, &out))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "| seed | 3 |")

	account := filepath.Join(journals, "account.json")
	text, err = os.ReadFile(account)
	require.NoError(t, err)
	text = bytes.Replace(text, []byte(`"leftover": null`), []byte(`"leftover": ["server 1: p:{a}"]`), 1)
	require.NoError(t, os.WriteFile(account, text, 0o600))
	require.Equal(t, harness.ExitViolation, program([]string{"-check", journals}, &out))
	require.Contains(t, out.String(), "VIOLATION leftover key")
}

// interrupter sends this process SIGINT once a text has been written to it.
type interrupter struct {
	bytes.Buffer
	at   string
	once sync.Once
}

func (i *interrupter) Write(p []byte) (int, error) {
	n, err := i.Buffer.Write(p)
	if bytes.Contains(i.Buffer.Bytes(), []byte(i.at)) {
		i.once.Do(func() {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Signal(os.Interrupt)
			}
		})
	}
	return n, err
}

// Interrupt checks that a program that is interrupted during the faults ends in order and leaves
// nothing.
func Interrupt(t *testing.T, program func(args []string, out io.Writer) int) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	out := &interrupter{at: "faults for"}
	code := program([]string{"-duration", "10m", "-seed", "1"}, out)
	require.Equal(t, harness.ExitInterrupted, code, out.String())
	require.Contains(t, out.String(), "interrupted: no violation so far")
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}
