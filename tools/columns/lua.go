package main

import "strings"

// luaComments is comments for a Lua file. Comments in brackets are not looked at.
func luaComments(text []byte) (reflowed []byte, findings []finding, err error) {
	lines := strings.Split(string(text), "\n")
	var out []string
	for i := 0; i < len(lines); {
		if !isLuaComment(lines[i]) {
			out = append(out, lines[i])
			i++
			continue
		}
		from := i
		var comment []string // as Go writes it, which is as wide
		for ; i < len(lines) && isLuaComment(lines[i]); i++ {
			comment = append(comment, strings.Replace(lines[i], "--", "//", 1))
		}
		for _, line := range reflowComment(comment, from, &findings) {
			out = append(out, strings.Replace(line, "//", "--", 1))
		}
	}
	return []byte(strings.Join(out, "\n")), findings, nil
}

// isLuaComment reports whether a line is nothing but a comment of one line.
func isLuaComment(line string) bool {
	return strings.HasPrefix(bare(line), "--") && !strings.HasPrefix(bare(line), "--[")
}
