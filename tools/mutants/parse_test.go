package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestParseList(t *testing.T) {
	got, err := parseList("a.txt", `# What these are.

first: One | two: three.
- a  b
+ c
./x: TestA

# Of the second.

second-one: Two.
- default:
+ case 1:
+ 	x()
+ default:
-
- y // why
./x: TestA TestB
often: 8
./x/y: TestC
dies: panic: oh no
model: no gate
chaos: -duration 1m
`)
	require.NoError(t, err)
	require.Equal(t, []Mutant{
		{Name: "first", Rule: "One | two: three.", Edits: []Edit{{"first", "a  b", "c"}}, Checks: []Check{{Package: "./x", Tests: []string{"TestA"}}}},
		{
			Name: "second-one", Rule: "Two.",
			Edits: []Edit{{"second-one", "default:", "case 1:\n\tx()\ndefault:"}, {"second-one/2", "", ""}, {"second-one/3", "y // why", ""}},
			Checks: []Check{
				{Package: "./x", Tests: []string{"TestA", "TestB"}, Often: 8},
				{Package: "./x/y", Tests: []string{"TestC"}, Dies: "panic: oh no"},
			},
			Model: "no gate", Chaos: "-duration 1m",
		},
	}, got)
}

func TestListsAreReadInTheOrderOfTheirNames(t *testing.T) {
	block := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(name + ": Rule.\n- x\n.: TestX")}
	}
	list, err := readLists(fstest.MapFS{"l/b.txt": block("m"), "l/a.txt": block("n"), "l/a.md": block("o")}, "l/*.txt")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "n", list[0].Name)
	require.Equal(t, "m", list[1].Name)
	_, err = readLists(fstest.MapFS{"l/b.txt": {Data: []byte("x")}}, "l/*.txt")
	require.ErrorContains(t, err, "b.txt:1")
}

func TestMistakesInAListAreNamedWithTheirLine(t *testing.T) {
	const head = "# About\n\nm: Rule.\n"
	for _, test := range []struct{ name, text, says string }{
		{"no name", "# About\n\nRule.\n- x\n.: TestX\n", "a.txt:3: a block begins with"},
		{"a bad name", "# About\n\nThe rule: it holds.\n- x\n.: TestX\n", "a.txt:3: a block begins with"},
		{"no edit", head + ".: TestX\n", "a.txt:3: m has no edit"},
		{"no edit, and more", head + ".: TestX\n\nn: Rule.\n", "a.txt:3: m has no edit"},
		{"no tests", head + "- x\n+ y\n", "a.txt:3: m names no tests"},
		{"a check of nothing", head + "- x\n.:\n", "a.txt:5: "},
		{"nothing changed", head + "- x\n+ x\n.: TestX\n", "a.txt:3: m: an edit changes nothing"},
		{"new before old", head + "+ x\n- y\n.: TestX\n", "a.txt:4: + stands below"},
		{"new text that is empty", head + "- x\n+\n.: TestX\n", `a.txt:5: "+" has no value`},
		{"an unknown line", head + "- x\n.: TestX\nmodels: y\n", `a.txt:6: "models: y" is no line of a block`},
		{"often of nothing", head + "- x\noften: 2\n.: TestX\n", "a.txt:5: often: stands below"},
		{"often once", head + "- x\n.: TestX\noften: 1\n", "a.txt:6: often: 1"},
		{"often a word", head + "- x\n.: TestX\noften: mostly\n", "a.txt:6: often: mostly"},
		{"dies twice", head + "- x\n.: TestX\ndies: a\ndies: b\n", "a.txt:7: dies: is given twice"},
		{"two models", head + "- x\n.: TestX\nmodel: a\nmodel: b\n", "a.txt:7: model: is given twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseList("a.txt", test.text)
			require.ErrorContains(t, err, test.says)
		})
	}
}
