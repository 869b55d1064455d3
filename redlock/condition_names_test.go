package redlock

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// conditionsIn returns the conditions of a file by their names, without a prefix.
func conditionsIn(t *testing.T, file, prefix string) map[string]string {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	conditions := make(map[string]string)
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Condition" {
			return true
		}
		for i, name := range spec.Names {
			short, ok := strings.CutPrefix(name.Name, prefix)
			require.True(t, ok, name.Name)
			value, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
			require.NoError(t, err)
			conditions[short] = value
		}
		return true
	})
	return conditions
}

// What a program may ask for has the same name and value as what servers are found to be, and of
// each condition is said what to do.
func TestConditionsHaveTheSameNames(t *testing.T) {
	servers, users := conditionsIn(t, "internal/wire/fault.go", ""), conditionsIn(t, "condition.go", "Condition")
	require.NotEmpty(t, users)
	require.Subset(t, servers, users)
	values := make(map[string]string)
	for name, value := range servers {
		require.Empty(t, values[value], "two have the value of %s", name)
		values[value] = name
		require.NotEmpty(t, advice[wire.Condition(value)], name)
		e := testQuorum(1).conditionError(&wire.Fault{Condition: wire.Condition(value), Detail: "seen"})
		require.Equal(t, value, ErrorType(e))
		require.Contains(t, e.Error(), advice[wire.Condition(value)])
	}
	require.Len(t, advice, len(servers))
}
