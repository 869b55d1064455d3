package main

import (
	"path"
	"slices"
	"strings"
)

// shape is the result for one package, or for the whole.
type shape struct {
	name    string
	below   []string // the measured packages that it imports; nil for the whole
	layers  string   // of the whole
	cycle   share    // files in the largest cycle of mutual use
	arrows  int      // from a file to another one that it uses
	up      int      // of these running back up
	away    share    // methods declared in another file than their type
	largest structure
	parents int   // uses of a parent pointer
	kinds   spots // that ask which kind an operation is
	branchy share // functions with more than maxBranches branches
	way     spots // functions met on the way of an uncontended TryAcquire
	code    text  // in Go
	luaCode text  // in .lua files that the package embeds
}

// share is n of all.
type share struct{ n, all int }

func (s *share) add(part share) { s.n, s.all = s.n+part.n, s.all+part.all }

// spots are places in some files.
type spots struct{ n, files int }

func (s *spots) add(part spots) { s.n, s.files = s.n+part.n, s.files+part.files }

// measure measures one package of those of root. Functions met are those that runAcquire returns.
func measure(pkg *source, root string, met []string) (*shape, error) {
	files := fileGraph(pkg)
	s := &shape{
		name:    name(pkg.ImportPath, root),
		cycle:   share{files.largestCycle(), len(files)},
		arrows:  files.arrows(),
		up:      files.up(),
		away:    methodsAway(pkg),
		largest: largestStruct(pkg),
		parents: parents(pkg),
		kinds:   kinds(pkg, root+"/internal/wire"),
		branchy: branchy(pkg),
		way:     metIn(pkg.ImportPath, met),
	}
	for _, path := range pkg.Imports {
		if path == root || strings.HasPrefix(path, root+"/internal/") {
			s.below = append(s.below, name(path, root))
		}
	}
	slices.Sort(s.below)
	return s, s.read(pkg)
}

// name is the path of a package as the tables have it.
func name(pkg, root string) string {
	if pkg == root {
		return path.Base(root)
	}
	return strings.TrimPrefix(pkg, root+"/")
}

// sum makes the whole of its parts. The largest cycle and the largest struct are those of one part.
func sum(parts []*shape) *shape {
	whole := &shape{name: parts[0].name, layers: layers(parts)}
	for _, s := range parts {
		whole.cycle = share{max(whole.cycle.n, s.cycle.n), whole.cycle.all + s.cycle.all}
		whole.arrows += s.arrows
		whole.up += s.up
		whole.away.add(s.away)
		if s.largest.fields > whole.largest.fields {
			whole.largest = s.largest
		}
		whole.parents += s.parents
		whole.kinds.add(s.kinds)
		whole.branchy.add(s.branchy)
		whole.way.add(s.way)
		whole.code.add(s.code)
		whole.luaCode.add(s.luaCode)
	}
	return whole
}

// layers names the packages layer by layer, the uppermost first. A package is one layer above the
// highest of those that it imports.
func layers(parts []*shape) string {
	height := make(map[string]int)
	for range parts {
		for _, s := range parts {
			for _, below := range s.below {
				height[s.name] = max(height[s.name], height[below]+1)
			}
		}
	}
	var names []string
	for h := len(parts) - 1; h >= 0; h-- {
		var layer []string
		for _, s := range parts {
			if height[s.name] == h {
				layer = append(layer, s.name)
			}
		}
		if layer != nil {
			names = append(names, strings.Join(layer, ", "))
		}
	}
	return strings.Join(names, " > ")
}
