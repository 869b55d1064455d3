package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// source is a package, as go list describes it, with its syntax and its types.
type source struct {
	ImportPath string
	Dir        string
	GoFiles    []string // names in Dir
	EmbedFiles []string
	Imports    []string
	Export     string // the file with the types of the package for those that import it
	DepOnly    bool   // it is only imported

	positions *token.FileSet
	files     []*ast.File
	types     *types.Package
	info      *types.Info
}

// load returns the package that matches pattern, and behind it those below its internal directory,
// in the order of their paths.
func load(ctx context.Context, pattern string) ([]*source, error) {
	found, err := list(ctx, pattern)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s matches %d packages: name one", pattern, len(found))
	}
	args := []string{"-deps", "-export", found[0].Dir}
	below := filepath.Join(found[0].Dir, "internal")
	if _, err := os.Stat(below); err == nil {
		args = append(args, filepath.Join(below, "..."))
	}
	all, err := list(ctx, args...)
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	for _, pkg := range all {
		exports[pkg.ImportPath] = pkg.Export
	}
	positions := token.NewFileSet()
	imports := importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	pkgs := slices.DeleteFunc(all, func(pkg *source) bool { return pkg.DepOnly })
	for _, pkg := range pkgs {
		if err := pkg.check(positions, imports); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(pkgs, func(a, b *source) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return pkgs, nil
}

// list runs go list. It compiles the packages where args have -export.
func list(ctx context.Context, args ...string) ([]*source, error) {
	args = append([]string{"list", "-json=ImportPath,Dir,GoFiles,EmbedFiles,Imports,Export,DepOnly"}, args...)
	out, err := output(ctx, "go", args...)
	if err != nil {
		return nil, err
	}
	var pkgs []*source
	for dec := json.NewDecoder(strings.NewReader(out)); ; {
		pkg := &source{}
		if err := dec.Decode(pkg); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go list: %w", err)
		}
		pkgs = append(pkgs, pkg)
	}
}

// check reads the package's files and finds the types of all that they name.
func (pkg *source) check(positions *token.FileSet, imports types.Importer) error {
	pkg.positions = positions
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(positions, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg.files = append(pkg.files, file)
	}
	pkg.info = &types.Info{
		Types:      make(map[ast.Expr]types.TypeAndValue),
		Defs:       make(map[*ast.Ident]types.Object),
		Uses:       make(map[*ast.Ident]types.Object),
		Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}
	var err error
	pkg.types, err = (&types.Config{Importer: imports}).Check(pkg.ImportPath, positions, pkg.files, pkg.info)
	return err
}

// file is the name of the file that a position is in.
func (pkg *source) file(at token.Pos) string {
	return filepath.Base(pkg.positions.Position(at).Filename)
}
