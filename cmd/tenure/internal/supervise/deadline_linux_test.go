package supervise

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that is frozen between two steps must not make the deadline later.
func TestDeadlineIsNeverTooLate(t *testing.T) {
	ends, before := time.Now().Add(time.Minute), now()
	left := time.Until(ends)
	truth := now().add(left) // at most later than it is
	require.LessOrEqual(t, instantOf(func() time.Time { return ends }), truth)
	late := instantOf(func() time.Time {
		defer time.Sleep(50 * time.Millisecond) // frozen after it was read
		return ends
	})
	require.LessOrEqual(t, late, truth)
	require.GreaterOrEqual(t, late, before.add(time.Minute-10*time.Second))
}

func TestDeadlineFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "deadline")
	at := now().add(time.Hour)
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	require.NoError(t, writeDeadline(name, at))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode(), "a command that becomes another user may read it")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var wall, up float64
	_, err = fmt.Sscanf(string(text), "%g %g\n", &wall, &up)
	require.NoError(t, err)
	require.InDelta(t, float64(time.Now().Add(time.Hour).Unix()), wall, 5)
	require.InDelta(t, time.Duration(at).Seconds(), up, 0.01)
	require.Error(t, writeDeadline(filepath.Join(t.TempDir(), "no", "deadline"), at))
}

// That the file's directory is gone is said once, and not the first time: the watchdog removes it.
func TestDeadlineFileThatIsGone(t *testing.T) {
	d, err := newDeadline()
	require.NoError(t, err)
	defer d.close()
	said, ends := []string{}, time.Now()
	r := &run{deadline: d, Command: Command{
		DeadlineFile: filepath.Join(t.TempDir(), "no", "deadline"), Say: func(line string) { said = append(said, line) },
		Deadline: func() time.Time { ends = ends.Add(time.Minute); return ends },
	}}
	for _, times := range []int{0, 1, 1} {
		r.publish()
		require.Len(t, said, times)
	}
}

// A lease that is lost has no deadline that is to come. Its command is told to end, and was killed
// at once.
func TestDeadlineOfALeaseThatHasEnded(t *testing.T) {
	d, err := newDeadline()
	require.NoError(t, err)
	defer d.close()
	ends := time.Now().Add(time.Minute)
	r := &run{deadline: d, Command: Command{Deadline: func() time.Time { return ends }}}
	r.publish()
	last := r.last
	require.InDelta(t, time.Minute, last.sub(now()), float64(time.Second))
	ends = time.Now()
	r.publish()
	require.Equal(t, last, r.last)
	ends = time.Now().Add(time.Second)
	r.publish()
	require.InDelta(t, time.Second, r.last.sub(now()), float64(time.Second/2), "a nearer one counts")
}

// An instant ends the wait, and so does a descriptor.
func TestTimer(t *testing.T) {
	w, err := newTimer()
	require.NoError(t, err)
	defer func() { _ = syscall.Close(w.fd) }()
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer out.Close()
	at := now().add(20 * time.Millisecond)
	w.wait(at, int(in.Fd()))
	require.GreaterOrEqual(t, now(), at)
	_, err = out.Write([]byte{1})
	require.NoError(t, err)
	w.wait(now().add(time.Hour), int(in.Fd()))
}

func TestMargin(t *testing.T) {
	require.Equal(t, 200*time.Millisecond, Margin(time.Second))
	require.Equal(t, time.Second, Margin(10*time.Second))
	require.Equal(t, 2*time.Second, Margin(time.Hour))
	for _, ttl := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, time.Hour} {
		require.LessOrEqual(t, lookEvery(ttl), Margin(ttl)/2, "tenure looks in time to kill what a frozen watchdog has not")
	}
}

// Whenever a command is told to end, and however long its grace, it is killed a margin before the
// deadline.
func TestKilledAMarginBeforeTheDeadline(t *testing.T) {
	d, err := newDeadline()
	require.NoError(t, err)
	defer d.close()
	d.store(100)
	w := &watchdog{deadline: d, grace: 30, margin: 20}
	require.Equal(t, instant(70), w.act(50), "it is told so that its grace ends with the lease")
	for told, kill := range map[instant]instant{10: 40, 50: 80, 60: 80, 70: 80} {
		w.told = told
		require.Equal(t, kill, w.act(told), "told at %d", told)
	}
}

// A process is found under any name, and is not another one that gets its number.
func TestProcesses(t *testing.T) {
	odd := filepath.Join(t.TempDir(), ") Z 1 (")
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(sleep, odd))
	cmd := exec.Command(odd, "60")
	require.NoError(t, cmd.Start())
	p, ok := readProcess(cmd.Process.Pid)
	require.True(t, ok)
	require.Equal(t, os.Getpid(), p.parent)
	require.False(t, p.dead())
	f := &family{root: os.Getpid()}
	require.Len(t, f.members(), 1)
	require.Empty(t, (&family{root: os.Getpid(), excluded: map[int]uint64{p.pid: p.began}}).members())
	require.Empty(t, (&family{root: os.Getpid(), spared: p.pid}).members())
	other := p
	other.began++
	require.False(t, other.signal(syscall.SIGKILL))
	_, refused := f.signal(0, nil)
	require.Empty(t, refused)
	_, refused = f.signal(syscall.SIGKILL, nil)
	require.Empty(t, refused)
	require.EqualError(t, cmd.Wait(), "signal: killed")
	require.Empty(t, f.members())
	_, ok = readProcess(p.pid)
	require.False(t, ok)
}

// What is to end the command reaches it also if it comes before the watchdog has started it.
func TestEndBeforeTheCommandHasStarted(t *testing.T) {
	end, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), end} {
		signals := make(chan syscall.Signal, 1)
		if ctx.Err() == nil {
			signals <- syscall.SIGTERM
		}
		result, err := Command{
			Path: "/bin/sleep", Args: []string{"sleep", "5"}, TTL: time.Minute, Grace: time.Second, Signals: signals,
			Deadline: func() time.Time { return time.Now().Add(time.Minute) },
		}.Run(ctx)
		require.NoError(t, err)
		require.Equal(t, 128+int(syscall.SIGTERM), result.Code)
	}
}
