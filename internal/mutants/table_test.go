package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	got := table([]*verdict{
		{mutant: &Mutant{Name: "a", Rule: "A | B."}, caughtBy: []string{"TestX", "TestY"}},
		{mutant: &Mutant{Name: "b", Rule: "B.", Model: "no gate", Chaos: "-duration 1m"}, caughtBy: []string{"TestZ"}},
		{mutant: &Mutant{Name: "c", Rule: "C."}},
		{mutant: &Mutant{Name: "d", Rule: "D."}, caughtBy: []string{"TestX"}, err: errRotted},
	})
	require.Equal(t, "| mutant | the rule that it breaks | caught by | and by |\n"+
		"| --- | --- | --- | --- |\n"+
		"| `a` | A \\| B. | `TestX`, `TestY` |  |\n"+
		"| `b` | B. | `TestZ` | model: no gate; chaos `-duration 1m` |\n"+
		"| `c` | C. | **nothing** |  |\n"+
		"| `d` | D. | **error** |  |\n", got)
}

func TestTableReplacesTheOldOne(t *testing.T) {
	document := "# Title\n\n" + tableBegin + "old\n" + tableEnd + "the end\n"
	want := "# Title\n\n" + tableBegin + "\nnew\n\n" + tableEnd + "the end\n"
	got, err := insertTable(document, "new\n")
	require.NoError(t, err)
	require.Equal(t, want, got)
	again, err := insertTable(got, "new\n")
	require.NoError(t, err)
	require.Equal(t, want, again)
}

func TestTableHasToHaveAPlace(t *testing.T) {
	for _, document := range []string{"", "text", tableBegin, tableEnd, tableEnd + tableBegin} {
		_, err := insertTable(document, "new\n")
		require.ErrorContains(t, err, "no place for the table")
	}
}

func TestWriteTable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.md")
	for _, text := range []string{"first\n", "second\n"} {
		require.NoError(t, writeTable(name, text))
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, tableBegin+"\n"+text+"\n"+tableEnd, string(got))
	}
	require.NoError(t, os.WriteFile(name, []byte("a page of another kind\n"), 0o600))
	require.Error(t, writeTable(name, "third\n"))
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "a page of another kind\n", string(got))
	require.Error(t, writeTable(filepath.Join(name, "below a file"), "text\n"))
}
