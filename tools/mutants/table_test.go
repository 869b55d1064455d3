package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	all := []Mutant{
		{Name: "a", Rule: "A | B."},
		{Name: "b", Rule: "B.", Model: "no gate", Chaos: "-duration 1m"},
		{Name: "c", Rule: "C."},
		{Name: "d", Rule: "D."},
		{Name: "e", Rule: "E."},
	}
	verdicts := []*verdict{
		{mutant: &all[0], caughtBy: []string{"TestX", "TestY"}},
		{mutant: &all[1], caughtBy: []string{"TestZ"}},
		{mutant: &all[2]},
		{mutant: &all[3], caughtBy: []string{"TestX"}, err: errRotted},
	}
	got := table(all, verdicts, "")
	require.Equal(t, "| mutant | the rule that it breaks | caught by | and by |\n"+
		"| --- | --- | --- | --- |\n"+
		"| `a` | A \\| B. | `TestX`, `TestY` |  |\n"+
		"| `b` | B. | `TestZ` | model: no gate; chaos `-duration 1m` |\n"+
		"| `c` | C. | **nothing** |  |\n"+
		"| `d` | D. | **error** |  |\n"+
		"| `e` | E. | **not run** |  |\n", got)
}

// Who adds a mutant need not run all others.
func TestMutantsThatAreNotRunKeepTheirRows(t *testing.T) {
	all := []Mutant{{Name: "a", Rule: "A | B."}, {Name: "b", Rule: "B."}, {Name: "c", Rule: "C.", Model: "no gate"}}
	old := table(all, []*verdict{
		{mutant: &all[0], caughtBy: []string{"TestX", "TestY"}}, {mutant: &all[1], caughtBy: []string{"TestX"}}, {mutant: &all[2], caughtBy: []string{"TestX"}},
	}, "")
	now := []Mutant{{Name: "c", Rule: "More.", Model: "no gate"}, {Name: "d", Rule: "D."}, {Name: "a", Rule: "A | B."}}
	got := table(now, []*verdict{{mutant: &now[1], caughtBy: []string{"TestZ"}}}, old)
	require.Equal(t, "| mutant | the rule that it breaks | caught by | and by |\n"+
		"| --- | --- | --- | --- |\n"+
		"| `c` | More. | `TestX` | model: no gate |\n"+
		"| `d` | D. | `TestZ` |  |\n"+
		"| `a` | A \\| B. | `TestX`, `TestY` |  |\n", got)
}

func TestTableHasToHaveAPlace(t *testing.T) {
	for _, document := range []string{"", "text", tableBegin, tableEnd, tableEnd + tableBegin} {
		_, _, _, err := cutTable(document)
		require.ErrorContains(t, err, "no place for the table")
	}
}

func TestWriteTable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.md")
	all := []Mutant{{Name: "a", Rule: "A."}}
	for _, by := range []string{"TestX", "TestY"} {
		require.NoError(t, writeTable(name, all, []*verdict{{mutant: &all[0], caughtBy: []string{by}}}))
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, tableBegin+"\n| mutant | the rule that it breaks | caught by | and by |\n| --- | --- | --- | --- |\n"+
			"| `a` | A. | `"+by+"` |  |\n\n"+tableEnd, string(got))
	}
	require.NoError(t, os.WriteFile(name, []byte("# Title\n\n"+tableBegin+"old\n"+tableEnd+"the end\n"), 0o600))
	require.NoError(t, writeTable(name, nil, nil))
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "# Title\n\n"+tableBegin+"\n"+table(nil, nil, "")+"\n"+tableEnd+"the end\n", string(got))
	require.NoError(t, os.WriteFile(name, []byte("a page of another kind\n"), 0o600))
	require.Error(t, writeTable(name, nil, nil))
	got, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "a page of another kind\n", string(got))
	require.Error(t, writeTable(filepath.Join(name, "below a file"), nil, nil))
}
