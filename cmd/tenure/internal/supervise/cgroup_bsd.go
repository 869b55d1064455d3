//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package supervise

import "errors"

// DelegatedCgroup is empty: only Linux has cgroups.
func DelegatedCgroup() string { return "" }

// OwnCgroup is empty likewise.
func OwnCgroup() string { return "" }

func makeCgroup(string) (string, error) {
	return "", errors.New("supervise: this system has no cgroups")
}

func removeCgroup(string) {}
