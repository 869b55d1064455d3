#!/usr/bin/env bash
# Prints a pattern for go test -run: the names of all tests of the library and the command that stand in files named
# _WORD_. Without a word they are those named _long_, and all tests of the manifests, the examples and the tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
files() {
	find admin cmd elector health internal otel redlock scheduler web -name "*_${1:-long}_*test.go"
	[ $# -gt 0 ] || find deploy examples tools -name '*_test.go' ! -name '*_nightly_*'
}
names=$(files "$@" | xargs sed -nE 's/^func ((Test|Example|Fuzz)[A-Za-z0-9_]*)\(.*/\1/p' | sort -u)
echo "^($(paste -sd '|' <<<"$names"))\$"
