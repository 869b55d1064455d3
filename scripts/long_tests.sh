#!/usr/bin/env bash
# Prints a pattern for go test -run: the names of all tests of the library and the command that stand in files named
# _long_, or _WORD_, and with those named _long_ of all tests of the manifests, the examples and the tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
word=${1:-long}
names() { find "$@" -exec sed -nE 's/^func ((Test|Example|Fuzz)[A-Za-z0-9_]*)\(.*/\1/p' {} +; }
{
	names admin cmd elector health internal otel redlock scheduler web -name "*_${word}_*test.go"
	[ "$word" != long ] || names deploy examples tools -name '*_test.go' ! -name '*_nightly_*'
} | sort -u | paste -sd '|' | sed 's/.*/^(&)$/'
