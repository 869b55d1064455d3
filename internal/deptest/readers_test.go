package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var documentName = regexp.MustCompile(`^(\.\./)+(docs/)?[A-Za-z]+\.md$`)

// readsDocument reports whether a piece of code names a document: by its path, or by directory and
// name.
func readsDocument(node ast.Node) (reads bool) {
	text := func(n ast.Node) string {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return ""
		}
		s, _ := strconv.Unquote(literal.Value)
		return s
	}
	ast.Inspect(node, func(n ast.Node) bool {
		reads = reads || documentName.MatchString(text(n))
		if call, ok := n.(*ast.CallExpr); ok {
			directory := slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return text(arg) == "docs" })
			reads = reads || directory && slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return strings.HasSuffix(text(arg), ".md") })
		}
		return !reads
	})
	return reads
}

// readersOf are the tests among files of a package that read documents, by themselves or through
// what they use.
func readersOf(files []*ast.File) (tests []string) {
	uses, reads := make(map[string]map[string]bool), make(map[string]bool)
	declare := func(name string, node ast.Node) {
		if uses[name] == nil {
			uses[name] = make(map[string]bool)
		}
		reads[name] = reads[name] || readsDocument(node)
		ast.Inspect(node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr: // of a field or of another package
				ast.Inspect(n.X, func(x ast.Node) bool {
					if id, ok := x.(*ast.Ident); ok {
						uses[name][id.Name] = true
					}
					return true
				})
				return false
			case *ast.Ident:
				uses[name][n.Name] = true
			}
			return true
		})
	}
	for _, file := range files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Body != nil {
					declare(d.Name.Name, d.Body)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if value, ok := spec.(*ast.ValueSpec); ok {
						for _, name := range value.Names {
							declare(name.Name, value)
						}
					}
				}
			}
		}
	}
	for more := true; more; {
		more = false
		for name, used := range uses {
			for other := range used {
				if reads[other] && !reads[name] {
					reads[name], more = true, true
				}
			}
		}
	}
	for name := range uses {
		if reads[name] && strings.HasPrefix(name, "Test") {
			tests = append(tests, name)
		}
	}
	return tests
}

// make docs runs every test that reads a document, but for those of the model, which make model
// runs, and those of this package, of which it runs all.
func TestMakeDocsRunsWhatReadsDocuments(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	variable := func(name string) []string {
		_, value, found := strings.Cut(string(text), "\n"+name+" := ")
		require.True(t, found, name)
		value, _, _ = strings.Cut(strings.ReplaceAll(value, "\\\n", " "), "\n")
		return slices.Sorted(slices.Values(strings.Fields(value)))
	}
	packages := make(map[string][]*ast.File)
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, filepath.Dir(file))
		packages[filepath.ToSlash(name)] = append(packages[filepath.ToSlash(name)], parsed)
		return err
	}))
	delete(packages, "internal/deptest")
	delete(packages, "tools/model")
	tests, in := make(map[string]bool), make(map[string]bool)
	for name, files := range packages {
		for _, test := range readersOf(files) {
			tests[test], in["./"+name] = true, true
		}
	}
	require.Greater(t, len(tests), 15)
	require.Equal(t, slices.Sorted(maps.Keys(tests)), variable("DOC_TESTS"), "DOC_TESTS in the Makefile")
	require.Equal(t, slices.Sorted(maps.Keys(in)), variable("DOC_PACKAGES"), "DOC_PACKAGES in the Makefile")
}
