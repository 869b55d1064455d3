package deptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Graph maps the import path of a package to the paths that its non-test files
// import. A package outside the graph imports nothing.
type Graph map[string][]string

// Load asks the go command for the packages that match patterns and for
// everything they reach, seen from directory dir ("" is the current one) and
// built for the platform in the environment: files of other platforms are not
// seen. It fails when a package cannot be loaded, so that a hole in the graph
// never passes for a missing import.
func Load(dir string, patterns ...string) (Graph, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Imports", "--"}, patterns...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("deptest: go list: %w\n%s", err, stderr.Bytes())
	}
	graph := Graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			return graph, nil
		} else if err != nil {
			return nil, fmt.Errorf("deptest: reading the output of go list: %w", err)
		}
		graph[pkg.ImportPath] = pkg.Imports
	}
}

// chain returns the shortest way of imports from one package to the first that
// stop accepts, both included, or nil. The first package is not asked.
func (g Graph) chain(from string, stop func(path string) bool) []string {
	via := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range g[queue[0]] {
			if _, seen := via[next]; seen {
				continue
			}
			via[next] = queue[0]
			if stop(next) {
				var way []string
				for path := next; path != ""; path = via[path] {
					way = append(way, path)
				}
				slices.Reverse(way)
				return way
			}
			queue = append(queue, next)
		}
	}
	return nil
}

// matches reports whether path is one of patterns, or lies below one that ends
// in "/...".
func matches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		root, tree := strings.CutSuffix(pattern, "/...")
		return path == root || tree && strings.HasPrefix(path, root+"/")
	})
}
