#!/usr/bin/env bash
# Tests add_backports of install-valkey.sh on copies of apt source files.
set -euo pipefail

# shellcheck source=scripts/install-valkey.sh
. "$(dirname "${BASH_SOURCE[0]}")/install-valkey.sh"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0 cases=0

fail() {
	printf 'install-valkey_test: %s: %s\n' "$1" "$2" >&2
	failures=$((failures + 1))
}

# rewrites NAME FILE INPUT WANT: INPUT becomes WANT, a second time changes
# nothing, and the file keeps its mode.
rewrites() {
	local name=$1 file=$dir/$2 round
	cases=$((cases + 1))
	printf '%s\n' "$3" >"$file"
	printf '%s\n' "$4" >"$dir/want"
	chmod 640 "$file"
	for round in first second; do
		add_backports "$file" bookworm || fail "$name" "$round call: status $?"
		diff -u "$dir/want" "$file" >&2 || fail "$name" "$round call: not the file wanted"
	done
	[ -n "$(find "$file" -perm 640)" ] || fail "$name" 'the mode changed'
	rm -f "$file"
}

# refuses NAME FILE INPUT: status 1, and the file is as it was.
refuses() {
	local name=$1 file=$dir/$2
	cases=$((cases + 1))
	printf '%s\n' "$3" >"$file"
	printf '%s\n' "$3" >"$dir/want"
	if add_backports "$file" bookworm; then fail "$name" 'status 0, want 1'; fi
	diff -u "$dir/want" "$file" >&2 || fail "$name" 'the file changed'
	rm -f "$file"
}

security='Types: deb
# http://snapshot.example/archive/debian-security/20250520T000000Z
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg'

# stanza SUITES prints a container image's entry for the Debian archive.
stanza() {
	printf '%s\n' 'Types: deb' \
		'# http://snapshot.example/archive/debian/20250520T000000Z' \
		'URIs: http://mirror.example/debian' \
		"Suites: $1" \
		'Components: main' \
		'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg'
}

plain=$(stanza 'bookworm bookworm-updates')
added=$(stanza 'bookworm bookworm-updates bookworm-backports')

rewrites 'deb822 without backports' debian.sources "$plain" "$added"
rewrites 'deb822 with backports' debian.sources "$added" "$added"
rewrites 'deb822, security stanza last' debian.sources "$plain

$security" "$added

$security"
rewrites 'deb822, security stanza first' debian.sources "$security

$plain" "$security

$added"
rewrites 'deb822, backports in a stanza of their own' debian.sources "$plain

$(stanza bookworm-backports)" "$plain

$(stanza bookworm-backports)"
rewrites 'deb822, backports switched off' debian.sources "$plain

Enabled: no
$(stanza bookworm-backports)" "$added

Enabled: no
$(stanza bookworm-backports)"
rewrites 'deb822, only the first of two archive stanzas' debian.sources "$plain


$(stanza bookworm)" "$added


$(stanza bookworm)"
rewrites 'deb822, source stanza first' debian.sources "Types: deb-src
URIs: http://mirror.example/debian
Suites: bookworm
Components: main

$plain" "Types: deb-src
URIs: http://mirror.example/debian
Suites: bookworm
Components: main

$added"
rewrites 'deb822, folded and mixed-case fields, inline key' debian.sources "types: deb deb-src
uris: http://mirror.example/debian
suites: bookworm$(printf '\t')
 bookworm-updates
components: contrib
 main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----" "types: deb deb-src
uris: http://mirror.example/debian
suites: bookworm bookworm-backports
 bookworm-updates
components: contrib
 main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----"
refuses 'deb822, security only' debian.sources "$security"
refuses 'deb822, another release' debian.sources "$(stanza 'trixie trixie-updates')"
refuses 'deb822, a vendor without main' vendor.sources 'Types: deb
URIs: https://vendor.example/debian
Suites: bookworm
Components: stable'

rewrites 'one line' sources.list '# deb http://mirror.example/debian bookworm-backports main
deb cdrom:[Debian GNU/Linux 12 _Bookworm_]/ bookworm main
deb https://vendor.example/debian bookworm stable
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib # the archive
deb http://mirror.example/debian bookworm-updates main
deb http://security.example/debian-security bookworm-security main' '# deb http://mirror.example/debian bookworm-backports main
deb cdrom:[Debian GNU/Linux 12 _Bookworm_]/ bookworm main
deb https://vendor.example/debian bookworm stable
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib # the archive
deb http://mirror.example/debian bookworm-backports main contrib # the archive
deb http://mirror.example/debian bookworm-updates main
deb http://security.example/debian-security bookworm-security main'
rewrites 'one line, options' sources.list \
	'deb [ arch=amd64 signed-by=/usr/share/keyrings/a.gpg ] http://mirror.example/bookworm  bookworm main' \
	'deb [ arch=amd64 signed-by=/usr/share/keyrings/a.gpg ] http://mirror.example/bookworm  bookworm main
deb [ arch=amd64 signed-by=/usr/share/keyrings/a.gpg ] http://mirror.example/bookworm  bookworm-backports main'
rewrites 'one line with backports' sources.list \
	'deb http://mirror.example/debian bookworm main
deb http://mirror.example/debian bookworm-backports main' \
	'deb http://mirror.example/debian bookworm main
deb http://mirror.example/debian bookworm-backports main'
refuses 'one line, security only' sources.list 'deb http://security.example/debian-security bookworm-security main'
refuses 'empty file' sources.list ''

if [ "$failures" -gt 0 ]; then
	printf 'install-valkey_test: %d failures in %d cases\n' "$failures" "$cases" >&2
	exit 1
fi
printf 'install-valkey_test: %d cases ok\n' "$cases"
