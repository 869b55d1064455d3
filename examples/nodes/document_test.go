package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page shows the files that the tests set servers up with, and nothing else in blocks but how
// to call programs.
func TestDocumentShowsTheFiles(t *testing.T) {
	text := read(t, "../../docs/nodes.md")
	blocks := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(text, -1)
	require.Equal(t, 2*len(blocks), strings.Count("\n"+text, "\n```"), "blocks that are not closed, or indented")
	seen := make(map[string]int)
	for _, block := range blocks {
		language, content := block[1], block[2]
		seen[language]++
		switch language {
		case "conf":
			require.Equal(t, read(t, "valkey.conf"), content)
		case "acl":
			require.Equal(t, read(t, "users.acl"), content)
		default:
			require.Equal(t, "sh", language)
			require.Regexp(t, `^examples/nodes/certificates\.sh |\ntenure doctor\n$`, content)
		}
	}
	require.Equal(t, map[string]int{"conf": 1, "acl": 1, "sh": 2}, seen)
}
