package main

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxBranches is how many branches a function may have without being counted.
const maxBranches = 5

// branchy counts the functions with more than maxBranches branches. A branch is an if, a loop, or a
// case of a switch or select. A default is none, and neither are && and ||.
func branchy(pkg *source) (s share) {
	for _, f := range functions(pkg) {
		branches := 0
		ast.Inspect(f, func(node ast.Node) bool {
			if isBranch(node) {
				branches++
			}
			return true
		})
		s.all++
		if branches > maxBranches {
			s.n++
		}
	}
	return s
}

func isBranch(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
		return true
	case *ast.CaseClause:
		return node.List != nil
	case *ast.CommClause:
		return node.Comm != nil
	}
	return false
}

// comparison is the precedence of ==, !=, <, <=, > and >=.
const comparison = 3

// kinds counts the places that ask which kind an operation is: comparisons with a constant of type
// Op of package wire, and each such constant in a case of a switch. The index of a row in a table
// asks nothing.
func kinds(pkg *source, wire string) (s spots) {
	isKind := func(e ast.Expr) bool {
		value := pkg.info.Types[e]
		if value.Value == nil {
			return false
		}
		of := named(value.Type)
		return of != nil && of.Name() == "Op" && of.Pkg().Path() == wire
	}
	for _, file := range pkg.files {
		before := s.n
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.BinaryExpr:
				if node.Op.Precedence() == comparison && (isKind(node.X) || isKind(node.Y)) {
					s.n++
				}
			case *ast.CaseClause:
				for _, e := range node.List {
					if isKind(e) {
						s.n++
					}
				}
			}
			return true
		})
		if s.n > before {
			s.files++
		}
	}
	return s
}

// text is how long some files are.
type text struct {
	files int
	lines int
	code  int // lines that have more than blanks and comments
}

func (t *text) add(part text) {
	t.files, t.lines, t.code = t.files+part.files, t.lines+part.lines, t.code+part.code
}

// read counts the lines of a package's files in Go and Lua.
func (s *shape) read(pkg *source) error {
	for _, file := range slices.Concat(pkg.GoFiles, pkg.EmbedFiles) {
		content, err := os.ReadFile(filepath.Join(pkg.Dir, file))
		if err != nil {
			return err
		}
		lines := strings.Count(string(content), "\n")
		switch filepath.Ext(file) {
		case ".go":
			s.code.add(text{1, lines, goLines(content)})
		case ".lua":
			s.luaCode.add(text{1, lines, luaLines(string(content))})
		}
	}
	return nil
}

// goLines counts the lines that a token, or a part of one, is on. All lines of a raw string count.
func goLines(content []byte) int {
	file := token.NewFileSet().AddFile("", -1, len(content))
	var tokens scanner.Scanner
	tokens.Init(file, content, nil, 0)
	seen := make(map[int]bool)
	for {
		at, kind, literal := tokens.Scan()
		if kind == token.EOF {
			return len(seen)
		}
		if kind == token.SEMICOLON && literal == "\n" { // stands for the end of a line
			continue
		}
		for i := range strings.Count(literal, "\n") + 1 {
			seen[file.Line(at)+i] = true
		}
	}
}

// luaLines knows the comments that end with their line. The scripts have no others.
func luaLines(content string) (n int) {
	for line := range strings.Lines(content) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			n++
		}
	}
	return n
}
