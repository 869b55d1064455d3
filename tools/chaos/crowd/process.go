package crowd

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
)

// Variable makes this program a client.
const Variable = "TENURE_CHAOS_CLIENT"

// process is a running client.
type process struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan string
	exited  chan struct{}

	mu   sync.Mutex
	life journal.Life // guarded by mu
}

// launchProcess starts this program as a client.
func launchProcess(l *launcher, job client.Assignment) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("crowd: cannot find this program's file to start a client: %w", err)
	}
	line, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	stderr, err := os.Create(filepath.Join(job.Journals, job.Name+".stderr"))
	if err != nil {
		return nil, fmt.Errorf("crowd: %w", err)
	}
	defer stderr.Close()
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), job.Env...), Variable+"="+job.Name)
	cmd.Stderr = stderr
	stdin, errIn := cmd.StdinPipe()
	stdout, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return nil, fmt.Errorf("crowd: no pipe to client %s: %w", job.Name, err)
	}
	p := &process{
		name: job.Name, cmd: cmd, stdin: stdin,
		answers: make(chan string, 8), exited: make(chan struct{}),
		life: journal.Life{Name: job.Name, Began: journal.Now()},
	}
	if err := l.start(cmd); err != nil {
		return nil, fmt.Errorf("crowd: cannot start client %s: %w", job.Name, err)
	}
	go p.follow(stdout, stderr.Name())
	return p, p.tell(string(line))
}

// follow passes on what the process says until it has ended.
func (p *process) follow(stdout io.Reader, stderr string) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		select {
		case p.answers <- lines.Text():
		default: // nobody waits for so many
		}
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	p.life.Ended = journal.Now()
	if err != nil {
		p.life.Err = err.Error()
		said, _ := os.ReadFile(stderr)
		p.life.Stderr = last(string(said), 2000)
	}
	p.mu.Unlock()
	close(p.exited)
}

func last(text string, most int) string {
	if text = strings.TrimSpace(text); len(text) > most {
		return "..." + text[len(text)-most:]
	}
	return text
}

// tell sends a line. That the process has ended is not an error: it shows in its life.
func (p *process) tell(line string) error {
	_, err := p.stdin.Write([]byte(line + "\n"))
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// await waits for an answer.
func (p *process) await(want string, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case got := <-p.answers:
			if got == want {
				return nil
			}
		case <-p.exited:
			return fmt.Errorf("crowd: client %s ended before it was %s", p.name, want)
		case <-timer.C:
			return fmt.Errorf("crowd: client %s was not %s within %s", p.name, want, timeout)
		}
	}
}

// kill sends SIGKILL and waits for the end.
func (p *process) kill() {
	p.mu.Lock()
	if p.life.Killed == 0 && p.life.Ended == 0 {
		p.life.Killed = journal.Now()
	}
	p.mu.Unlock()
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.exited
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}
