#!/usr/bin/env bash
# Prints a pattern for go test -run: the names of all tests of the library and the command that stand in files named
# _long_, or _WORD_.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
names=$(find admin cmd elector health internal otel redlock scheduler web -name "*_${1:-long}_*test.go" -exec \
	sed -nE 's/^func ((Test|Example|Fuzz)[A-Za-z0-9_]*)\(.*/\1/p' {} + | sort -u)
echo "^($(paste -sd '|' <<<"$names"))\$"
