#!/usr/bin/env bash
# Runs the tests that need real servers on several servers: the Valkey and Redis
# versions that Debian packages. It installs nothing. Packages, with the C
# library and all others that they need, come from the Debian archive that the
# machine's own apt uses, and are unpacked below bin/servers; a server runs with
# the libraries of its own release. A server that cannot be had is skipped, and
# the last lines say why.
#
#   scripts/servers.sh [NAME...]         fetch and test (all of them)
#   scripts/servers.sh fetch [NAME...]   fetch only, and print where they are
#
# TESTFLAGS is added to go test; -run in it narrows what is run. Exit status 1:
# a test failed on a server, or there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Name, suite, package.
servers='valkey-8.0 bookworm-backports valkey-server
valkey-8.1 trixie valkey-server
redis-7.0 bookworm redis-server
redis-8.0 trixie redis-server'

cache=$PWD/bin/servers
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf 'servers: %s\n' "$*"; }

# archive prints the URI of the Debian archive that apt uses.
archive() {
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sort -u | head -n 1
}

# fetch NAME SUITE PACKAGE unpacks a server below the cache. Status 1, with the
# reason in $reason: it cannot be had.
fetch() {
	local name=$1 suite=$2 package=$3 dir=$cache/$1 uri apt options loader libraries
	if [ -x "$dir/server" ] && "$dir/server" --version >/dev/null 2>&1; then return 0; fi
	reason='there is no apt-get'
	command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
	reason="there is no $keyring"
	[ -r "$keyring" ] || return 1
	reason='apt knows no Debian archive (is apt-get update due?)'
	uri=$(archive) && [ -n "$uri" ] || return 1

	rm -rf "$dir"
	apt=$dir/apt
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/status"
	printf "deb [signed-by=$keyring] $uri %s main\n" "${suite%-backports}" "$suite" | sort -u >"$apt/sources.list"
	# Nothing counts as installed, so that everything that the package needs comes with it.
	options=(-qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State="$apt"
		-o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache"
		-o APT::Install-Recommends=false -o Debug::NoLocking=true -o Acquire::Retries=3 -o APT::Sandbox::User=)
	reason="no package lists of Debian $suite at $uri"
	apt-get "${options[@]}" update >/dev/null 2>"$apt/log" || return 1
	reason="no package $package in Debian $suite: $(tail -n 1 "$apt/log")"
	apt-get "${options[@]}" -y -t "$suite" --download-only install "$package" </dev/null >/dev/null 2>"$apt/log" || {
		reason="no package $package in Debian $suite: $(tail -n 1 "$apt/log")"
		return 1
	}
	mkdir -p "$dir/root"
	for file in "$apt"/cache/archives/*.deb; do dpkg -x "$file" "$dir/root"; done
	rm -rf "$apt"
	find "$dir/root" ! -type d ! -name '*.so*' ! -path '*/usr/bin/valkey-*' ! -path '*/usr/bin/redis-*' -delete
	find "$dir/root" -type d -empty -delete

	reason="$package of Debian $suite cannot be run here"
	loader=$(cd "$dir" && find root -name 'ld-linux*.so.*' -print -quit)
	libraries=$(cd "$dir" && find root -name '*.so.*' -printf '%h\n' | sort -u | sed 's,^,$dir/,' | paste -sd :)
	[ -n "$loader" ] && [ -x "$dir/root/usr/bin/$package" ] || return 1
	cat >"$dir/server" <<-END
		#!/bin/sh
		dir=\${0%/*}
		exec "\$dir/$loader" --library-path "$libraries" "\$dir/root/usr/bin/$package" "\$@"
	END
	chmod +x "$dir/server"
	"$dir/server" --version >/dev/null 2>&1
}

# tests PACKAGE prints the names of its tests on real servers, as a pattern.
tests() {
	grep -hoE '^func Test[A-Za-z0-9_]+' "$1"/*_server_test.go | sed 's/^func //' | paste -sd '|' | sed 's/.*/^(&)$/'
}

# run NAME runs the tests on a server.
run() {
	local package status=0
	export TENURE_VALKEY_SERVER=$cache/$1/server
	say "$1: $("$TENURE_VALKEY_SERVER" --version)"
	for package in ./redlock ./redlock/internal/wire ./elector ./scheduler; do
		# shellcheck disable=SC2086
		go test -tags long -count=1 -timeout "${TIMEOUT:-30m}" -run "$(tests "$package")" ${TESTFLAGS-} "$package" || status=1
	done
	# shellcheck disable=SC2086
	go test -tags long -count=1 -timeout "${TIMEOUT:-30m}" ${TESTFLAGS-} ./internal/valkeytest ./examples/nodes || status=1
	return "$status"
}

main() {
	local only='' passed=() failed=() skipped=() name suite package reason=''
	if [ "${1-}" = fetch ]; then
		only=yes
		shift
	fi
	while read -r name suite package; do
		case " $* " in
		'  ' | *" $name "*) ;;
		*) continue ;;
		esac
		if ! fetch "$name" "$suite" "$package"; then
			skipped+=("$name: $reason")
		elif [ -n "$only" ]; then
			passed+=("$name")
			say "$name: $cache/$name/server"
		elif run "$name" </dev/null; then
			passed+=("$name")
		else
			failed+=("$name")
		fi
	done <<<"$servers"
	for name in ${skipped[@]+"${skipped[@]}"}; do say "skipped $name"; done
	if [ -z "$only" ]; then
		say "passed: ${passed[*]-none}"
		say "failed: ${failed[*]-none}"
	fi
	[ ${#passed[@]} -gt 0 ] && [ ${#failed[@]} -eq 0 ]
}

main "$@"
