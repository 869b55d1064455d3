#!/usr/bin/env bash
# Fails when a file of the repository names a directory of somebody's machine:
# such a path works nowhere else. Bracketed letters keep the pattern from
# matching itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pattern='(^|[^[:alnum:]_.~/-])/([w]ork|[r]oot|[h]ome|[U]sers)(/|$|[^[:alnum:]_-])'
if grep -rInE --exclude-dir=.git --exclude=.git "$pattern" .; then
	echo 'check-paths: the lines above name machine paths; use paths relative to the repository or a temporary directory' >&2
	exit 1
fi
