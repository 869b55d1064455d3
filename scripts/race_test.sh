#!/usr/bin/env bash
# Tests race.sh with a go command that does what it is told.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
race=$(cd "$(dirname "$0")" && pwd)/race.sh
cat >"$dir/go" <<'EOF'
#!/usr/bin/env bash
# Answers -list, and for the rest does the next line of the file todo: pass, fail, race or crash.
case " $* " in
*" -list "*) printf 'TestA\nTestB\nok  \tp\t0.1s\nExampleC\nFuzzD\nTestE\n'; exit ;;
esac
echo "$*" >>"$DIR/asked"
what=$(head -n 1 "$DIR/todo")
sed -i 1d "$DIR/todo"
case $what in
pass) echo 'ok  	p	0.1s'; exit 0 ;;
fail) printf -- '--- FAIL: TestA (0.00s)\nFAIL\n' ;;
race) printf 'WARNING: DATA RACE\nSIGSEGV: segmentation violation\n\ngoroutine 0 [idle, synctest bubble 7]:\n' ;;
crash) printf 'SIGSEGV: segmentation violation\nPC=0x1\n\ngoroutine 0 [idle, synctest bubble 7]:\nFAIL\n' ;;
elsewhere) printf 'SIGSEGV: segmentation violation\nPC=0x1\n\ngoroutine 0 [idle]:\nFAIL\n' ;;
*) echo "nothing to do" ;;
esac
exit 1
EOF
chmod +x "$dir/go"

# check NAME SHARDS TODO STATUS TIMES [ARGUMENT...]: how race.sh ends, and how often it runs tests.
check() {
	local name=$1 shards=$2 todo=$3 want=$4 times=$5 status=0
	shift 5
	tr ' ' '\n' <<<"$todo" >"$dir/todo"
	: >"$dir/asked"
	SHARDS=$shards DIR=$dir PATH=$dir:$PATH "$race" "$@" ./p >"$dir/out" 2>&1 || status=$?
	if [ "$status" != "$want" ] || [ "$(wc -l <"$dir/asked")" != "$times" ]; then
		echo "race_test.sh: $name: status $status, not $want, or not $times runs:" >&2
		cat "$dir/asked" "$dir/out" >&2
		exit 1
	fi
}

# asked NAME LINE...: what was run.
asked() {
	local name=$1
	shift
	if [ "$(cat "$dir/asked")" != "$(printf '%s\n' "$@")" ]; then
		echo "race_test.sh: $name: it ran:" >&2
		cat "$dir/asked" >&2
		exit 1
	fi
}

check 'what passes' 1 'pass' 0 1 -v
asked 'what passes' 'test -race -v ./p'
check 'a crash' 1 'crash crash pass' 0 3
check 'too many crashes' 1 'crash crash crash crash crash crash pass' 1 6
check 'a failure' 1 'fail pass' 1 1
check 'a race before a crash' 1 'race pass' 1 1
check 'another crash' 1 'elsewhere pass' 1 1
check 'shards' 2 'pass crash pass' 0 3 -v
asked 'shards' 'test -race -run ^(TestA|ExampleC|TestE)$ -v ./p' 'test -race -run ^(TestB|FuzzD)$ -v ./p' 'test -race -run ^(TestB|FuzzD)$ -v ./p'
check 'a failure in the first shard' 2 'fail pass' 1 1
check 'a failure in the last shard' 2 'pass fail' 1 2
check 'more shards than tests' 9 'pass pass pass pass pass' 0 5
check 'with -run' 2 'pass' 0 1 -run TestA
asked 'with -run' 'test -race -run TestA ./p'
