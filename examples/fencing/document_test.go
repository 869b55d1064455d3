package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const document = "../../docs/leases.md"

var (
	codeBlock = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	longToken = regexp.MustCompile(`\b[1-9][0-9]{15}\b`)
	lostEarly = regexp.MustCompile(`(?m)^.*lost the lease too early.*\n`)
	quoted    = regexp.MustCompile(`\]\(\.\./(examples/fencing/[^)]+)\)`)
)

// documented returns the code blocks of the document in a language.
func documented(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	var blocks []string
	for _, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		if block[1] == language {
			blocks = append(blocks, block[2])
		}
	}
	require.NotEmpty(t, blocks, "the document has blocks of %q", language)
	return blocks
}

// anonymous leaves out what differs from run to run: the tokens, and that a slow machine made A
// acquire its lease again.
func anonymous(text string) string {
	return longToken.ReplaceAllString(lostEarly.ReplaceAllString(text, ""), "TOKEN")
}

// The document quotes the statements as the code sends them, and shows each of them.
func TestDocumentedStatements(t *testing.T) {
	var statements []string
	for _, statement := range []string{createSQL, setSQL, claimSQL, addSQL} {
		statements = append(statements, strings.TrimPrefix(statement, "\n")+"\n")
	}
	require.ElementsMatch(t, statements, documented(t, "sql"))
}

// No block of the document escapes the tests here, and the files that it names exist.
func TestDocumentHasNothingElse(t *testing.T) {
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	blocks := codeBlock.FindAllStringSubmatch(string(text), -1)
	require.Equal(t, 2*len(blocks), strings.Count("\n"+string(text), "\n```"), "blocks that are not closed, or indented")
	for _, block := range blocks {
		require.Contains(t, []string{"sql", "go", "console"}, block[1], block[2])
	}
	require.Len(t, documented(t, "console"), 1)
	links := quoted.FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, links)
	for _, link := range links {
		require.FileExists(t, filepath.Join("../..", link[1]))
	}
}
