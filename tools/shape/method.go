package main

import (
	"go/ast"
	"go/types"
)

// functions returns the functions and methods of a package. A function literal is a part of the
// function that it is in.
func functions(pkg *source) (all []*ast.FuncDecl) {
	for _, file := range pkg.files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				all = append(all, f)
			}
		}
	}
	return all
}

// receiver is the type that a method is declared for, and nil for a function.
func receiver(pkg *source, f *ast.FuncDecl) *types.TypeName {
	if f.Recv == nil {
		return nil
	}
	return named(pkg.info.Defs[f.Name].(*types.Func).Signature().Recv().Type())
}

// named is the name of a type, or of the type that it points to, and nil if that has none.
func named(t types.Type) *types.TypeName {
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		t = pointer.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj()
	}
	return nil
}

// methodsAway counts the methods that are declared in another file than their type.
func methodsAway(pkg *source) (s share) {
	for _, f := range functions(pkg) {
		of := receiver(pkg, f)
		if of == nil {
			continue
		}
		s.all++
		if pkg.file(f.Pos()) != pkg.file(of.Pos()) {
			s.n++
		}
	}
	return s
}

// structure is a struct type.
type structure struct {
	name    string
	fields  int
	methods int
	files   int // that the methods are in
}

// largestStruct is the struct type with the most fields, and of several the first by name. An
// embedded struct is one field, and its methods are not counted.
func largestStruct(pkg *source) (s structure) {
	var largest types.Object
	for _, name := range pkg.types.Scope().Names() { // sorted
		of, ok := pkg.types.Scope().Lookup(name).(*types.TypeName)
		if !ok || of.IsAlias() {
			continue
		}
		if t, ok := of.Type().Underlying().(*types.Struct); ok && t.NumFields() > s.fields {
			s.name, s.fields, largest = name, t.NumFields(), of
		}
	}
	files := make(map[string]bool)
	for _, f := range functions(pkg) {
		if of := receiver(pkg, f); of != nil && of == largest {
			s.methods++
			files[pkg.file(f.Pos())] = true
		}
	}
	s.files = len(files)
	return s
}
