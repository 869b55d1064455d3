package main

import (
	"maps"
	"slices"
)

// graph has an arrow from each name to those that it uses.
type graph map[string]map[string]bool

// fileGraph has an arrow from each file of a package to each other one that it uses: it names an
// identifier of the package, a method or a field that is declared there. The method of an interface
// is declared in the interface. An embedded field that a selection leaves out is not named.
func fileGraph(pkg *source) graph {
	g := make(graph)
	for _, file := range pkg.GoFiles {
		g[file] = make(map[string]bool)
	}
	for id, object := range pkg.info.Uses {
		if object.Pkg() != pkg.types {
			continue
		}
		from, to := pkg.file(id.Pos()), pkg.file(object.Pos())
		if from != to {
			g[from][to] = true
		}
	}
	return g
}

func (g graph) arrows() (n int) {
	for _, to := range g {
		n += len(to)
	}
	return n
}

// distances are how many arrows away names are from the nearest of some. Names that no arrow leads
// to are left out.
func (g graph) distances(from []string) map[string]int {
	distance := make(map[string]int)
	for _, name := range from {
		distance[name] = 0
	}
	for queue := slices.Clone(from); len(queue) > 0; queue = queue[1:] {
		for to := range g[queue[0]] {
			if _, seen := distance[to]; !seen {
				distance[to] = distance[queue[0]] + 1
				queue = append(queue, to)
			}
		}
	}
	return distance
}

// reach returns, for each name, the names that it uses, directly or through others.
func (g graph) reach() graph {
	reach := make(graph)
	for from, uses := range g {
		reach[from] = make(map[string]bool)
		for to := range g.distances(slices.Collect(maps.Keys(uses))) {
			reach[from][to] = true
		}
	}
	return reach
}

// cyclic returns the graph with those arrows that are part of a cycle.
func (g graph) cyclic() graph {
	reach, cyclic := g.reach(), make(graph)
	for from, uses := range g {
		cyclic[from] = make(map[string]bool)
		for to := range uses {
			if reach[to][from] {
				cyclic[from][to] = true
			}
		}
	}
	return cyclic
}

// largestCycle is the size of the largest strongly connected component, in which each name uses
// each other one, directly or through others. It is 0 where there is no cycle.
func (g graph) largestCycle() (n int) {
	for _, component := range g.cyclic().reach() {
		n = max(n, len(component))
	}
	return n
}

// up is how many arrows run back up when the names are in a good order, users above the used. There
// is no cycle without these arrows. The order comes from the heuristic of Eades, Lin and Smyth ("A
// fast and effective heuristic for the feedback arc set problem", 1993), for the arrows that are
// part of a cycle. Names that use none of the rest go to the bottom. Names that none of the rest
// uses go to the top. If there are neither, the name goes to the top that has the most arrows from
// it less arrows to it, and of several such names the first by the alphabet. Another order may have
// fewer arrows that run back up.
func (g graph) up() (n int) {
	for rest := g.cyclic(); len(rest) > 0; {
		users := make(map[string]int)
		for _, uses := range rest {
			for to := range uses {
				users[to]++
			}
		}
		next, most := "", 0
		for _, name := range slices.Sorted(maps.Keys(rest)) {
			uses := len(rest[name])
			if uses == 0 || users[name] == 0 {
				next = name
				break
			}
			if surplus := uses - users[name]; next == "" || surplus > most {
				next, most = name, surplus
			}
		}
		if len(rest[next]) > 0 { // it is not at the bottom
			n += users[next]
		}
		delete(rest, next)
		for _, uses := range rest {
			delete(uses, next)
		}
	}
	return n
}
