package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// machine is where and with what a run was made.
type machine struct {
	Date       string            `json:"date"`
	OS         string            `json:"os"`
	CPUs       int               `json:"cpus"`
	CPU        string            `json:"cpu"`
	GOMAXPROCS int               `json:"gomaxprocs"`
	Go         string            `json:"go"`
	Server     string            `json:"server"`
	Modules    map[string]string `json:"modules"`
}

// modules are those whose versions matter.
func modules() []string {
	var paths []string
	for _, k := range append(rival.All(), gocronRedisLock, gocronAlone) {
		if !slices.Contains(paths, k.Module) {
			paths = append(paths, k.Module)
		}
	}
	return append(paths, "github.com/redis/go-redis/v9", "github.com/Shopify/toxiproxy/v2")
}

func thisMachine(server string, now time.Time) *machine {
	m := &machine{
		Date: now.UTC().Format("2006-01-02 15:04 UTC"), OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), CPU: cpuModel(),
		GOMAXPROCS: runtime.GOMAXPROCS(0), Go: runtime.Version(), Server: server, Modules: make(map[string]string),
	}
	info, _ := debug.ReadBuildInfo()
	for _, path := range modules() {
		m.Modules[path] = version(info, path)
	}
	return m
}

// version is that of a module in this program.
func version(info *debug.BuildInfo, path string) string {
	if info != nil {
		for _, dep := range info.Deps {
			switch {
			case dep.Path != path:
			case dep.Replace != nil:
				return "this checkout"
			default:
				return dep.Version
			}
		}
	}
	return "unknown"
}

// cpuModel is what Linux calls the first CPU.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func (m *machine) markdown(w *strings.Builder) {
	fmt.Fprintf(w, "%s; %s, %d CPUs (%s), GOMAXPROCS %d; %s; Valkey %s, %d servers on loopback without persistence; ",
		m.Date, m.OS, m.CPUs, m.CPU, m.GOMAXPROCS, m.Go, m.Server, nodes)
	var all []string
	for _, path := range modules() {
		all = append(all, path[strings.Index(path, "/")+1:]+" "+m.Modules[path])
	}
	fmt.Fprintf(w, "%s.\n\n", strings.Join(all, ", "))
}
