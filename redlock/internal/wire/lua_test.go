package wire

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Each script is Lua, as it is sent. Servers run Lua 5.1, which is what the parser reads.
func TestScriptsAreLua(t *testing.T) {
	scripts := make(map[string]string)
	for _, name := range scriptNames(t) {
		scripts[name] = load(name).text
	}
	for name, text := range scripts {
		_, err := parse.Parse(strings.NewReader(text), name)
		require.NoError(t, err, text)
	}
	_, err := parse.Parse(strings.NewReader(newScript("return {").text), "broken")
	require.Error(t, err)
}

// scriptNames are the files of this package, without those of lib.
func scriptNames(t *testing.T) (names []string) {
	files, err := fs.Glob(sources, "*.lua")
	require.NoError(t, err)
	for _, file := range files {
		names = append(names, strings.TrimSuffix(path.Base(file), ".lua"))
	}
	require.Greater(t, len(names), 8)
	return names
}

// A name that a script uses is its own, or one of those that a server gives it: else it would be a
// global variable, which a server refuses when it comes to that line, and not before.
func TestScriptsUseNoGlobals(t *testing.T) {
	for _, name := range scriptNames(t) {
		require.Empty(t, globals(t, load(name).text), name)
	}
	require.Equal(t, []string{"typo"}, globals(t, "local function f(x) return x, typo end return f(1)"))
}

var given = regexp.MustCompile(`^(redis|KEYS|ARGV|string|table|math|type|tonumber|tostring|ipairs|pcall|unpack)$`)

// globals are the names in a text that are neither given nor local to some part of it.
func globals(t *testing.T, text string) (found []string) {
	chunk, err := parse.Parse(strings.NewReader(text), "text")
	require.NoError(t, err)
	var s scope
	s.block(chunk)
	return s.found
}

// scope is a walk through a text that knows which names are local where it is.
type scope struct {
	local []string
	found []string
}

func (s *scope) in(names []string, walk func()) {
	outer := len(s.local)
	s.local = append(s.local, names...)
	walk()
	s.local = s.local[:outer]
}

func (s *scope) block(statements []ast.Stmt) {
	s.in(nil, func() {
		for _, statement := range statements {
			s.statement(statement)
		}
	})
}

func (s *scope) statement(statement ast.Stmt) {
	switch n := statement.(type) {
	case *ast.AssignStmt:
		s.all(n.Lhs)
		s.all(n.Rhs)
	case *ast.LocalAssignStmt:
		if len(n.Exprs) == 1 {
			if _, is := n.Exprs[0].(*ast.FunctionExpr); is {
				s.local = append(s.local, n.Names...) // it may call itself
			}
		}
		s.all(n.Exprs)
		s.local = append(s.local, n.Names...)
	case *ast.FuncCallStmt:
		s.expression(n.Expr)
	case *ast.DoBlockStmt:
		s.block(n.Stmts)
	case *ast.WhileStmt:
		s.expression(n.Condition)
		s.block(n.Stmts)
	case *ast.RepeatStmt:
		s.block(n.Stmts)
		s.expression(n.Condition)
	case *ast.IfStmt:
		s.expression(n.Condition)
		s.block(n.Then)
		s.block(n.Else)
	case *ast.NumberForStmt:
		s.all([]ast.Expr{n.Init, n.Limit})
		if n.Step != nil {
			s.expression(n.Step)
		}
		s.in([]string{n.Name}, func() { s.block(n.Stmts) })
	case *ast.GenericForStmt:
		s.all(n.Exprs)
		s.in(n.Names, func() { s.block(n.Stmts) })
	case *ast.ReturnStmt:
		s.all(n.Exprs)
	case *ast.BreakStmt:
	default:
		panic(fmt.Sprintf("a statement that this test does not know: %T", n))
	}
}

func (s *scope) all(expressions []ast.Expr) {
	for _, expression := range expressions {
		s.expression(expression)
	}
}

func (s *scope) expression(expression ast.Expr) {
	switch n := expression.(type) {
	case *ast.IdentExpr:
		if !given.MatchString(n.Value) && !slices.Contains(s.local, n.Value) {
			s.found = append(s.found, n.Value)
		}
	case *ast.AttrGetExpr:
		s.all([]ast.Expr{n.Object, n.Key})
	case *ast.TableExpr:
		for _, field := range n.Fields {
			if field.Key != nil {
				s.expression(field.Key)
			}
			s.expression(field.Value)
		}
	case *ast.FuncCallExpr:
		if n.Func != nil {
			s.expression(n.Func)
		} else {
			s.expression(n.Receiver)
		}
		s.all(n.Args)
	case *ast.LogicalOpExpr:
		s.all([]ast.Expr{n.Lhs, n.Rhs})
	case *ast.RelationalOpExpr:
		s.all([]ast.Expr{n.Lhs, n.Rhs})
	case *ast.StringConcatOpExpr:
		s.all([]ast.Expr{n.Lhs, n.Rhs})
	case *ast.ArithmeticOpExpr:
		s.all([]ast.Expr{n.Lhs, n.Rhs})
	case *ast.UnaryMinusOpExpr:
		s.expression(n.Expr)
	case *ast.UnaryNotOpExpr:
		s.expression(n.Expr)
	case *ast.UnaryLenOpExpr:
		s.expression(n.Expr)
	case *ast.FunctionExpr:
		s.in(n.ParList.Names, func() { s.block(n.Stmts) })
	case *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.NumberExpr, *ast.StringExpr, *ast.Comma3Expr:
	default:
		panic(fmt.Sprintf("an expression that this test does not know: %T", n))
	}
}
