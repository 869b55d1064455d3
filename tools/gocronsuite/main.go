// Command gocronsuite writes gocron's own tests as a package that makes its schedulers with
// scheduler.New, and prints which tests it leaves out because they look inside gocron:
//
//	go run ./tools/gocronsuite scheduler/internal/gocronsuite
//	TEST_ENV=ci go test ./scheduler/internal/gocronsuite
//
// What it writes is gocron's (MIT) and is not to be committed. Jobs without a name get one, because
// a Scheduler needs it, and the options that New takes in its own words are translated.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gocronsuite DIRECTORY")
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-co-op/gocron/v2").Output()
	check(err)
	fset, own := token.NewFileSet(), make(map[string]bool) // names of gocron's package
	var tests []*ast.File
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	check(err)
	for _, name := range files {
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		check(err)
		switch {
		case f.Name.Name != "gocron":
		case strings.HasSuffix(name, "_test.go"):
			tests = append(tests, f)
		default:
			for name := range f.Scope.Objects {
				own[name] = true
			}
		}
	}
	check(os.MkdirAll(os.Args[1], 0o777))
	left := 0
	for _, f := range tests {
		left += outside(f, own)
		f.Name.Name, f.Comments = "gocronsuite", nil
		f.Decls = slices.Insert(f.Decls, 0, ast.Decl(&ast.GenDecl{Tok: token.IMPORT, Specs: []ast.Spec{
			&ast.ImportSpec{Path: &ast.BasicLit{Kind: token.STRING, Value: `"github.com/go-co-op/gocron/v2"`}},
		}}))
		used := make(map[string]bool)
		ast.Inspect(f, func(n ast.Node) bool {
			if s, is := n.(*ast.SelectorExpr); is {
				used[fmt.Sprint(s.X)] = true
			}
			return true
		})
		for _, spec := range f.Imports {
			if name := strings.Trim(path.Base(spec.Path.Value), `"`); !used[name] {
				spec.Name = ast.NewIdent("_")
			}
		}
		var text bytes.Buffer
		check(format.Node(&text, fset, f))
		name := filepath.Base(fset.Position(f.Pos()).Filename)
		text.WriteString("\nvar _ gocron.Job\n")
		check(os.WriteFile(filepath.Join(os.Args[1], name), text.Bytes(), 0o666))
	}
	check(os.WriteFile(filepath.Join(os.Args[1], "wrapper_test.go"), []byte(wrapper), 0o666))
	fmt.Println(left, "tests look inside gocron")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// translated are options of gocron that New takes in its own words.
var translated = []string{"NewScheduler", "SchedulerOption", "WithStopTimeout", "WithLocation", "WithGlobalJobOptions", "Scheduler"}

// outside names gocron's package where its names are used, and drops what uses unexported ones. It
// returns how many tests that were.
func outside(f *ast.File, own map[string]bool) (left int) {
	var inside []token.Pos
	for _, id := range f.Unresolved {
		switch {
		case !own[id.Name], slices.Contains(translated, id.Name):
		case !id.IsExported():
			inside = append(inside, id.Pos())
		default:
			id.Name = "gocron." + id.Name
		}
	}
	f.Decls = slices.DeleteFunc(f.Decls, func(d ast.Decl) bool {
		fn, is := d.(*ast.FuncDecl)
		drop := slices.ContainsFunc(inside, func(at token.Pos) bool { return at >= d.Pos() && at < d.End() })
		if drop && is && strings.HasPrefix(fn.Name.Name, "Test") {
			left++
			fmt.Println(fn.Name.Name)
		}
		return drop
	})
	return left
}
