package main

import (
	"go/ast"
	"go/types"
)

// parents counts the uses of a parent pointer: selections x.p.y, where p is a field that points to
// a type of the package, the parent, that holds the type of x. A type holds another one if its
// fields lead there, also through pointers, slices, arrays, maps, channels, type arguments and
// other types of the package, but not through interfaces and functions.
//
// Of two types that hold each other, the parent is the one that is fewer fields away from an
// exported type. If they are equally far, both are parents. A type is not its own parent: such a
// pointer makes a list.
//
// A pointer from an object that nobody holds, such as one that lives for one call, is not counted.
func parents(pkg *source) (n int) {
	holds := typeGraph(pkg)
	var exported []string
	for name := range holds {
		if ast.IsExported(name) {
			exported = append(exported, name)
		}
	}
	depth, reach := holds.distances(exported), holds.reach()
	for _, file := range pkg.files {
		ast.Inspect(file, func(node ast.Node) bool {
			if y, ok := node.(*ast.SelectorExpr); ok {
				child, parent := fieldPointer(pkg, y.X)
				if parent != child && reach[parent][child] && depth[parent] <= depth[child] {
					n++
				}
			}
			return true
		})
	}
	return n
}

// fieldPointer returns the names of the types of x and of p in the selection x.p of a field that
// points to a type of the package.
func fieldPointer(pkg *source, e ast.Expr) (of, to string) {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	selection, ok := pkg.info.Selections[selector]
	if !ok {
		return "", ""
	}
	pointer, ok := types.Unalias(selection.Type()).(*types.Pointer)
	if !ok {
		return "", ""
	}
	x, p := named(selection.Recv()), named(pointer)
	if x == nil || p == nil || p.Pkg() != pkg.types {
		return "", ""
	}
	return x.Name(), p.Name()
}

// typeGraph has an arrow from each type of a package to those of the package that its fields hold.
func typeGraph(pkg *source) graph {
	g := make(graph)
	scope := pkg.types.Scope()
	for _, name := range scope.Names() {
		of, ok := scope.Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		g[name] = make(map[string]bool)
		held(of.Type().Underlying(), func(t *types.TypeName) {
			if t.Parent() == scope {
				g[name][t.Name()] = true
			}
		})
	}
	return g
}

// held calls found with each named type that a type is made of.
func held(t types.Type, found func(*types.TypeName)) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		found(t.Obj())
		for argument := range t.TypeArgs().Types() {
			held(argument, found)
		}
	case *types.Struct:
		for field := range t.Fields() {
			held(field.Type(), found)
		}
	case *types.Map:
		held(t.Key(), found)
		held(t.Elem(), found)
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		held(t.Elem(), found)
	}
}
