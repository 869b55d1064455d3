#!/usr/bin/env bash
# Makes sure axe-core is at bin/axe/axe.min.js: tests of the pages look with it
# for what not everybody can use. It comes from npm, in one exact version whose
# hash is below; nothing of it is committed.
#
# Present: prints the version and exits 0. Missing: fetches it with npm, which
# Debian's package npm brings where it is missing. Where that is not possible:
# one line of advice, exit 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=4.14.1
sha256=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
directory=bin/axe
advice="put axe.min.js of axe-core $version at $directory/axe.min.js"

say() { printf 'install-axe: %s\n' "$*"; }
die() {
	say "$*" >&2
	exit 1
}

# present reports whether the file is there, and is the one that is meant.
present() {
	[ -f "$directory/axe.min.js" ] && printf '%s  %s\n' "$sha256" "$directory/axe.min.js" | sha256sum --check --status
}

need_npm() {
	local root=()
	if command -v npm >/dev/null; then return 0; fi
	command -v apt-get >/dev/null || die "npm is missing and there is no apt-get; $advice"
	if [ "$(id -u)" -ne 0 ]; then
		sudo -n true 2>/dev/null || die "npm is missing and installing it needs root; $advice"
		root=(sudo -n)
	fi
	say 'installing the package npm'
	${root[@]+"${root[@]}"} apt-get -qq update || true
	${root[@]+"${root[@]}"} env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends npm </dev/null >/dev/null ||
		die "apt-get could not install npm; $advice"
}

main() {
	local scratch
	if ! present; then
		need_npm
		scratch=$(mktemp -d)
		# shellcheck disable=SC2064
		trap "rm -rf '$scratch'" EXIT
		npm pack --silent --pack-destination "$scratch" "axe-core@$version" >/dev/null || die "npm could not fetch it; $advice"
		mkdir -p "$directory"
		tar -xzf "$scratch/axe-core-$version.tgz" -C "$scratch" package/axe.min.js package/LICENSE
		mv "$scratch/package/axe.min.js" "$scratch/package/LICENSE" "$directory"
		present || die "npm brought another file than axe-core $version has"
	fi
	echo "axe-core $version"
}

main
