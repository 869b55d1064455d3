//go:build linux

package supervise

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// instant is a time on the suspendAware clock, in nanoseconds.
type instant int64

func (i instant) add(d time.Duration) instant { return i + instant(d) }

func (i instant) sub(j instant) time.Duration { return time.Duration(i - j) }

// now reads the clock. If the clock cannot be read, it returns an instant after every deadline.
func now() instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(suspendAware, &ts); err != nil {
		return 1<<63 - 1
	}
	return instant(ts.Nano())
}

// deadlineSize is the size of the shared memory in bytes: one page.
const deadlineSize = 4096

// deadline is the deadline of the lease, in memory that tenure and the watchdog share. A message
// could be read too late, for example if its reader was frozen.
type deadline struct {
	fd     int
	memory []byte
}

// newDeadline makes the memory. Its descriptor is inherited by processes that this process starts.
func newDeadline() (*deadline, error) {
	fd, err := unix.MemfdCreate("tenure-deadline", 0) // memory with a descriptor; it needs no file system
	if err == nil {
		err = unix.Ftruncate(fd, deadlineSize)
	}
	if err != nil {
		_ = unix.Close(fd) // also if it is -1
		return nil, fmt.Errorf("supervise: cannot make memory to share: %w", err)
	}
	return mapDeadline(fd)
}

// mapDeadline maps the memory of a descriptor into this process. The watchdog maps the descriptor
// that it inherited. With an error the descriptor is closed.
func mapDeadline(fd int) (*deadline, error) {
	memory, err := unix.Mmap(fd, 0, deadlineSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("supervise: cannot map shared memory: %w", err)
	}
	return &deadline{fd, memory}, nil
}

func (d *deadline) word() *int64 { return (*int64)(unsafe.Pointer(&d.memory[0])) }

func (d *deadline) load() instant { return instant(atomic.LoadInt64(d.word())) }

func (d *deadline) store(at instant) { atomic.StoreInt64(d.word(), int64(at)) }

func (d *deadline) close() {
	_ = unix.Munmap(d.memory)
	_ = unix.Close(d.fd)
}

// instantOf returns the instant at which the lease ends. The process may be frozen, or the machine
// suspended, between any two steps. In this order the result is then too early, and never too late.
func instantOf(lease func() time.Time) instant {
	began := now()
	ends := lease()
	return began.add(time.Until(ends))
}

// writeDeadline replaces the file that tells the command its deadline: in seconds since 1970, and
// in seconds of /proc/uptime, a clock that is never set. The file is readable by every user,
// whatever the umask is.
func writeDeadline(name string, at instant) error {
	left := at.sub(now())
	text := fmt.Sprintf("%.3f %.3f\n", float64(time.Now().Add(left).UnixMilli())/1000, time.Duration(at).Seconds())
	next := filepath.Join(filepath.Dir(name), ".next")
	if err := cmp.Or(os.WriteFile(next, []byte(text), 0o644), os.Chmod(next, 0o644)); err != nil {
		return err
	}
	return os.Rename(next, name)
}
