package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
)

// target is an entry of a file for Prometheus' service discovery by files.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// writeTargets writes the addresses of replicas by name. The label instance, which would be the
// address, is the name: that is what service.instance.id is, and what a replica keeps when it is
// started again. The file is there in one piece or not at all.
func writeTargets(path string, addresses map[string]string) (err error) {
	var list []target
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		list = append(list, target{Targets: []string{reachable(addresses[name])}, Labels: map[string]string{"instance": name}})
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("-targets: %w", err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".targets-*")
	if err != nil {
		return fmt.Errorf("-targets: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
			err = fmt.Errorf("-targets: %w", err)
		}
	}()
	_, err = temporary.Write(append(text, '\n'))
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(temporary.Name(), 0o644) // Prometheus may be another user
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	return err
}

// reachable is an address to connect to where one to listen at names all addresses.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
