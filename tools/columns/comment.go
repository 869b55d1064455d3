package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

var (
	directive = regexp.MustCompile(`^//([a-z0-9]+:|line |export |extern )`)
	output    = regexp.MustCompile(`(?i)^//\s*(unordered )?output:`)
	listItem  = regexp.MustCompile(`^//\s+([-*+•]|\d+[.)])\s`)
	linkNamed = regexp.MustCompile(`^// \[[^]]+\]: `)
)

// comments re-flows the comments of a Go file and returns the lines of the file that are too wide.
func comments(text []byte) (reflowed []byte, findings []finding, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	lines := strings.Split(string(text), "\n")
	var out []string
	done := 0 // lines that are in out
	if !ast.IsGenerated(file) {
		for _, group := range file.Comments {
			from, to, ok := own(set, lines, group)
			if !ok {
				continue
			}
			out = append(out, lines[done:from]...)
			out = append(out, reflowComment(lines[from:to], from, &findings)...)
			done = to
		}
	}
	out = append(out, lines[done:]...)
	return []byte(strings.Join(out, "\n")), findings, nil
}

// own returns the lines of a comment that has them for itself. It is not ok if the comment begins
// behind code, or is written with slash and star.
func own(set *token.FileSet, lines []string, group *ast.CommentGroup) (from, to int, ok bool) {
	from = set.PositionFor(group.Pos(), false).Line - 1
	to = set.PositionFor(group.End(), false).Line
	for _, line := range lines[from:to] {
		if !strings.HasPrefix(strings.TrimLeft(line, " \t"), "//") {
			return 0, 0, false
		}
	}
	return from, to, true
}

// reflowComment returns the lines of a comment, paragraphs with a line that is too wide re-flowed,
// and adds the lines that are too wide to findings. The first line is at in the file.
func reflowComment(lines []string, at int, findings *[]finding) []string {
	var out []string
	for i := 0; i < len(lines); {
		if output.MatchString(bare(lines[i])) {
			return append(out, lines[i:]...)
		}
		if fixed(lines[i]) {
			out = append(out, lines[i])
			i++
			continue
		}
		end := i + 1
		for end < len(lines) && continues(lines[i], lines[end]) {
			end++
		}
		out = append(out, paragraph(lines[i:end], at+i, findings)...)
		i = end
	}
	return out
}

// paragraph returns the lines of a paragraph or of an item of a list.
func paragraph(lines []string, at int, findings *[]finding) []string {
	wide := false
	var words []string
	for i, line := range lines {
		fields := strings.Fields(strings.TrimPrefix(bare(line), "//"))
		if width(line) > maxComment && len(fields) > 1 {
			*findings = append(*findings, finding{at + i + 1, width(line)})
			wide = true
		}
		words = append(words, fields...)
	}
	if !wide {
		return lines
	}
	indent := lines[0][:len(lines[0])-len(bare(lines[0]))]
	first, rest := indent+"// ", indent+"// "
	if marker := listItem.FindString(bare(lines[0])); marker != "" {
		first = indent + marker
		words = words[1:]
		rest = indent + "//" + strings.Repeat(" ", len(marker)-len("//"))
	}
	return fill(words, first, rest, maxComment)
}

// bare is a line without its indentation.
func bare(line string) string { return strings.TrimLeft(line, " \t") }

// fixed reports whether a line is to stay as it is: what is no paragraph.
func fixed(line string) bool {
	text := bare(line)
	switch {
	case text == "//", directive.MatchString(text), linkNamed.MatchString(text), strings.Contains(text, "//mutant:"):
		return true
	case strings.HasPrefix(text, "// # "), !strings.HasPrefix(text, "// "):
		return true
	case listItem.MatchString(text):
		return false
	}
	return strings.HasPrefix(text, "//  ") || strings.HasPrefix(text, "// \t") // code
}

// continues reports whether line goes on with the paragraph that begins with first.
func continues(first, line string) bool {
	text := bare(line)
	if output.MatchString(text) || listItem.MatchString(text) && listItem.MatchString(bare(first)) {
		return false
	}
	if listItem.MatchString(bare(first)) {
		return strings.HasPrefix(text, "//  ") && strings.TrimSpace(text) != "//"
	}
	return !fixed(line) && !(listItem.MatchString(text) && strings.HasPrefix(text, "//  "))
}
