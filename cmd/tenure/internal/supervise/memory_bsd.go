//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package supervise

import "os"

// sharedFile is a file without a name.
func sharedFile() (*os.File, error) {
	file, err := os.CreateTemp("", "tenure-deadline-")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}
