#!/usr/bin/env bash
# Prints a pattern for go test -run: the names of all tests of the library that stand in files named _long_.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
names=$(find admin elector health internal otel redlock scheduler web -name '*_long_*test.go' -exec \
	sed -nE 's/^func ((Test|Example|Fuzz)[A-Za-z0-9_]*)\(.*/\1/p' {} + | sort -u)
echo "^($(paste -sd '|' <<<"$names"))\$"
