#!/usr/bin/env bash
# Prints how large each part of the repository is beside its ceiling in scripts/size.txt, and exits with 1 where one is
# above it. With "set", it makes the ceilings what is there now, rounded up to a multiple of ten: git diff shows it.
#
# Lines are those of .go and .lua files, scripts and the Makefile that are neither blank nor comments alone; tests are the
# files named _test.go or _test.sh. Of documents the words are counted, of Markdown whole.
# A part is a directory with all below it that is no part of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find . -name '.?*' -prune -o -path ./bin -prune -o -type f \( -name '*.go' -o -name '*.lua' -o -name '*.md' -o -name '*.sh' \
	-o -name Makefile \) -print0 | sort -z | xargs -0 awk -v ceilings=scripts/size.txt -v mode="${1-}" '
	BEGIN {
		while ((getline line <ceilings) > 0) {
			if (line ~ /^#/) head = head line "\n"
			if (line ~ /^#/ || split(line, word) < 3) continue
			part[++parts] = word[1]; code_limit[word[1]] = word[2]; test_limit[word[1]] = word[3]
		}
	}
	# in_part is the part with the longest name that a file lies in.
	function in_part(file,    i, best) {
		if (file ~ /\.md$/) return "words"
		if (file ~ /\.lua$/) return "lua"
		if (file ~ /Makefile$/) return "scripts"
		for (i = 1; i <= parts; i++)
			if (index(file, part[i] "/") == 1 && length(part[i]) > length(best)) best = part[i]
		return best == "" ? "elsewhere" : best
	}
	FNR == 1 {
		file = substr(FILENAME, 3); here = in_part(file); inside = 0
		is_test = file ~ /_test\.(go|sh)$/
		comment = file ~ /\.go$/ ? "^[ \t]*(//|$)" : file ~ /\.lua$/ ? "^[ \t]*(--|$)" : "^[ \t]*(#|$)"
	}
	here == "words" { code[here] += NF; next }
	file ~ /\.go$/ && /^[ \t]*\/\*/ { inside = 1 }
	inside { if (/\*\//) inside = 0; next }
	$0 ~ comment { next }
	is_test { test[here]++; next }
	{ code[here]++ }
	function row(name, c, cl, t, tl) {
		over = c > cl || t > tl
		printf "%-22s %7d of %7d   %7d of %7d%s\n", name, c, cl, t, tl, over ? "   TOO LARGE" : ""
		return over
	}
	function up(n) { return int((n + 9) / 10) * 10 }
	END {
		if ("elsewhere" in code || "elsewhere" in test) { print "size: there are lines that are in no part of " ceilings >"/dev/stderr"; exit 1 }
		if (mode == "set") {
			printf "%s", head >ceilings
			for (i = 1; i <= parts; i++) printf "%-22s %7d %7d\n", part[i], up(code[part[i]]), up(test[part[i]]) >ceilings
			exit
		}
		printf "%-22s %18s   %18s\n", "", "code", "tests"
		for (i = 1; i <= parts; i++) {
			p = part[i]
			failed += row(p, code[p], code_limit[p], test[p], test_limit[p])
			if (p == "words" || p == "lua" || p == "scripts") continue
			c += code[p]; cl += code_limit[p]; t += test[p]; tl += test_limit[p]
		}
		row("Go", c, cl, t, tl)
		if (failed) print "size: make it smaller, or raise its ceiling in " ceilings " and say why" >"/dev/stderr"
		exit failed > 0
	}'
