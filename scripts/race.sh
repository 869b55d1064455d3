#!/usr/bin/env bash
# Runs `go test -race` with the given arguments. The race detector's runtime of Go 1.26 crashes with a SIGSEGV when two timers
# of a testing/synctest bubble run at the same time, as they can where a goroutine sets or receives from one that is due: they
# share its state (runtime.timer.unlockAndRun). Package redlock avoids such timers (atOnce), but what it uses may not. Such a
# crash, and nothing else, is run again, five times at most: a test that failed or a race that was found fails at once. What
# passed is cached.
#
# SHARDS=n runs the tests of one package in n parts, one after the other, so that a crash costs a part only. With -run
# there are no parts.
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT

attempts() {
	local attempt status
	for attempt in 1 2 3 4 5 6; do
		go test -race "$@" 2>&1 | tee "$log"
		status=${PIPESTATUS[0]}
		if [ "$status" -eq 0 ]; then return 0; fi
		if grep -qE '^ *--- FAIL|DATA RACE|^panic:|build failed|^goleak: |test timed out' "$log"; then return "$status"; fi
		# The first two goroutines that are printed are the scheduler's own and the one that it worked for.
		if ! grep -A5 '^SIGSEGV: segmentation violation' "$log" | grep -q '^goroutine .*synctest bubble'; then return "$status"; fi
		echo "race.sh: the race detector's runtime crashed (attempt $attempt)" >&2
	done
	return "$status"
}

case " ${SHARDS:-1} $* " in
" 1 "* | *" -run "* | *" -run="*) attempts "$@"; exit ;;
esac
tests=$(go test -race -list . "$@") || { echo "$tests"; exit 1; }
mapfile -t names < <(grep -E '^(Test|Example|Fuzz)' <<<"$tests")
if [ "${#names[@]}" -eq 0 ]; then echo "race.sh: there are no tests: $tests" >&2; exit 1; fi
for ((shard = 0; shard < SHARDS; shard++)); do
	part=()
	for ((i = shard; i < ${#names[@]}; i += SHARDS)); do part+=("${names[i]}"); done
	if [ "${#part[@]}" -eq 0 ]; then continue; fi
	(IFS='|' && attempts -run "^(${part[*]})\$" "$@") || exit
done
