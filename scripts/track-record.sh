#!/usr/bin/env bash
# Shows a fault of docs/track-record.md: the row's test fails on the commit before the one that mended it, with the test
# files of that commit, and passes on that commit. Exits with 0 if both were seen, with 1 if not, and with 2 if the row
# cannot be run. Without a number it lists what it reads in the table.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false"

fail() { echo "track-record: $*" >&2; exit 2; }

# Each row as words: number, commit, package, test, test files.
rows() {
	awk -F ' *[|] *' '$2 ~ /^[0-9]+$/ { gsub(/`/, ""); print $2, $5, $6, $7, $8 }' docs/track-record.md
}
if [ $# -eq 0 ]; then rows; exit; fi
read -r _ commit package test files < <(rows | grep "^$1 ") || fail "docs/track-record.md has no row $1"
git rev-parse -q --verify "$commit^^{commit}" >/dev/null ||
	fail "commit $commit, or the one before it, is not in this clone; get the whole history: git fetch --unshallow"

tree=$(mktemp -d)
trap 'git worktree remove --force "$tree" 2>/dev/null || rm -rf "$tree"' EXIT
git worktree add --quiet --detach "$tree" "$commit^"
for file in $files; do git -C "$tree" checkout --quiet "$commit" -- "$package/$file"; done

# expect runs the test, and ends the script if its verdict is another. One that hangs has failed. One that does not compile
# has no verdict.
expect() {
	local verdict=$1 where=$2 output seen
	echo "=== $where: go test -run '^$test\$' ./$package"
	output=$(cd "$tree" && go test -v -vet=off -count=1 -timeout 1m -run "^$test\$" "./$package" 2>&1) || true
	grep -E '^[[:space:]]+(Error:|expected|actual|Messages:)|^ +[a-z_]+\.go:' <<<"$output" | head -n 12 || true
	seen="^--- $verdict: $test "
	if [ "$verdict" = FAIL ]; then seen+='|^panic: test timed out'; fi
	if ! grep -E "$seen" <<<"$output"; then
		printf '%s\ntrack-record: the verdict is not %s %s\n' "$output" "$verdict" "$where" >&2
		exit 1
	fi
}
expect FAIL "before $commit"
git -C "$tree" checkout --quiet --force "$commit"
expect PASS "on $commit"
echo "row $1: as the page says"
