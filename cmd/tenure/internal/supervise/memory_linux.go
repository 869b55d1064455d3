package supervise

import (
	"os"

	"golang.org/x/sys/unix"
)

// sharedFile is memory that has a descriptor (memfd_create(2)), so that no file system is needed.
func sharedFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("tenure-deadline", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "tenure-deadline"), nil
}
