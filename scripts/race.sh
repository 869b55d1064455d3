#!/usr/bin/env bash
# Runs `go test -race` with the given arguments. The race detector's runtime of Go 1.26 crashes now and then, with a
# SIGSEGV on the scheduler's own goroutine, while that works for a testing/synctest bubble. Such a crash, and nothing
# else, is run again, five times at most: a test that failed or a race that was found fails at once. What passed is cached.
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for attempt in 1 2 3 4 5 6; do
	go test -race "$@" 2>&1 | tee "$log"
	status=${PIPESTATUS[0]}
	if [ "$status" -eq 0 ]; then exit 0; fi
	if grep -qE '^ *--- FAIL|DATA RACE|^panic:|build failed|^goleak: |test timed out' "$log"; then exit "$status"; fi
	# The first two goroutines that are printed are the scheduler's own and the one that it worked for.
	if ! grep -A5 '^SIGSEGV: segmentation violation' "$log" | grep -q '^goroutine .*synctest bubble'; then exit "$status"; fi
	echo "race.sh: the race detector's runtime crashed (attempt $attempt)" >&2
done
exit "$status"
