package main

import (
	"regexp"
	"slices"
	"strings"
)

var (
	fence      = regexp.MustCompile("^ *(```+|~~~+)")
	item       = regexp.MustCompile(`^ *([-*+]|\d+[.)]) +`)
	quote      = regexp.MustCompile(`^ *> ?`)
	heading    = regexp.MustCompile(`^ *#{1,6} `)
	definition = regexp.MustCompile(`^ *\[[^]]+\]: `)
	rule       = regexp.MustCompile(`^ *(-[- ]*|=+|\*[* ]*|_[_ ]*)$`)
	markup     = regexp.MustCompile(`^ *</?[a-zA-Z!]`)

	// begins matches a word that begins something else than text where it is the first of a line.
	begins = regexp.MustCompile("^([-*+]|\\d+[.)]|#{1,6}|>.*|\\|.*|-+|=+|```.*|~~~.*|</?[a-zA-Z!].*)$")
)

// prose re-flows a Markdown file and returns its lines that are too wide.
func prose(text []byte) (reflowed []byte, findings []finding, err error) {
	lines := strings.Split(string(text), "\n")
	var out []string
	for i := 0; i < len(lines); {
		end := i + 1
		switch line := lines[i]; {
		case fence.MatchString(line):
			mark := strings.TrimSpace(fence.FindString(line))
			for end < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[end]), mark) {
				end++
			}
			end = min(end+1, len(lines))
			out = append(out, lines[i:end]...)
		case !isText(line), isCode(lines, i):
			out = append(out, line)
		default:
			for end < len(lines) && isText(lines[end]) && !fence.MatchString(lines[end]) &&
				!item.MatchString(lines[end]) && quote.MatchString(lines[end]) == quote.MatchString(line) {
				end++
			}
			out = append(out, reflowProse(lines[i:end], i, &findings)...)
		}
		i = end
	}
	return []byte(strings.Join(out, "\n")), findings, nil
}

// isText reports whether a line belongs to a paragraph.
func isText(line string) bool {
	return strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "|") && !heading.MatchString(line) &&
		!definition.MatchString(line) && !rule.MatchString(line) && !markup.MatchString(line)
}

// isCode reports whether the paragraph that begins with line i is code by its indentation. In a
// list it is text.
func isCode(lines []string, i int) bool {
	if !strings.HasPrefix(lines[i], "    ") && !strings.HasPrefix(lines[i], "\t") || item.MatchString(lines[i]) {
		return false
	}
	for _, line := range slices.Backward(lines[:i]) {
		if item.MatchString(line) {
			return false
		}
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			return true
		}
	}
	return true
}

// reflowProse returns the lines of a paragraph, re-flowed if one is too wide, and adds those to
// findings. The first line is at in the file.
func reflowProse(lines []string, at int, findings *[]finding) []string {
	first := item.FindString(lines[0])
	rest := strings.Repeat(" ", len(first))
	if marked := quote.FindString(lines[0]); marked != "" {
		first, rest = marked, marked
	} else if first == "" {
		first = lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
		rest = first
	}
	wide, broken := false, false
	var text []string
	for i, line := range lines {
		if i == 0 || quote.MatchString(line) {
			line = line[min(len(first), len(line)):]
		}
		if width(lines[i]) > maxProse && len(split(line)) > 1 {
			*findings = append(*findings, finding{at + i + 1, width(lines[i])})
			wide = true
		}
		if i < len(lines)-1 && (strings.HasSuffix(line, "  ") || strings.HasSuffix(line, `\`)) {
			broken = true // on purpose
		}
		text = append(text, strings.TrimSpace(line))
	}
	if !wide || broken {
		return lines
	}
	return fill(split(strings.Join(text, " ")), first, rest, maxProse)
}

// split returns what may stand on lines of its own: words, with code and the targets of links in
// one piece. A word that would begin something else on a new line is one with the word before.
func split(text string) []string {
	var words []string
	code, target, start := "", 0, 0
	end := func(i int) {
		if word := text[start:i]; word == "" {
			return
		} else if len(words) > 0 && begins.MatchString(word) {
			words[len(words)-1] += " " + word
		} else {
			words = append(words, word)
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '`':
			ticks := text[i : i+len(text[i:])-len(strings.TrimLeft(text[i:], "`"))]
			switch {
			case code == ticks:
				code = ""
			case code == "" && strings.Contains(text[i+len(ticks):], ticks):
				code = ticks
			}
			i += len(ticks) - 1
		case code != "":
		case c == '(' && (target > 0 || i > 0 && text[i-1] == ']'):
			target++
		case c == ')' && target > 0:
			target--
		case c == ' ' && target == 0:
			end(i)
			start = i + 1
		}
	}
	end(len(text))
	return words
}
