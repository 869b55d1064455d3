#!/usr/bin/env bash
# Makes sure there is a C compiler: tests that move a server's clock compile a
# small library with it, and so does the race detector.
#
# Present, or not on Linux: exits 0. Missing: installs gcc and the C library's
# headers through apt-get, as root or through `sudo -n`. Where that is not
# possible: one line of advice, exit 1.
set -euo pipefail

advice='install gcc with the headers of the C library: Debian and Ubuntu: gcc libc6-dev, Fedora: gcc glibc-devel'

say() { printf 'install-compiler: %s\n' "$*"; }
die() {
	say "$*" >&2
	exit 1
}

# compiles reports whether a compiler is there and finds the headers.
compiles() {
	local compiler
	for compiler in cc gcc; do
		if command -v "$compiler" >/dev/null &&
			printf '#include <time.h>\n' | "$compiler" -fsyntax-only -x c - 2>/dev/null; then
			return 0
		fi
	done
	return 1
}

main() {
	if [ "$(uname -s)" != Linux ] || compiles; then return 0; fi
	command -v apt-get >/dev/null || die "there is no C compiler and no apt-get; $advice"
	if [ "$(id -u)" -ne 0 ]; then
		sudo -n true 2>/dev/null || die "there is no C compiler and installing one needs root; $advice"
		exec sudo -n bash "${BASH_SOURCE[0]}"
	fi
	say 'installing the packages gcc and libc6-dev'
	export DEBIAN_FRONTEND=noninteractive
	local options=(-qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120)
	apt-get "${options[@]}" update || say 'apt-get update reported errors; trying to install nevertheless' >&2
	apt-get "${options[@]}" install -y --no-install-recommends gcc libc6-dev </dev/null >/dev/null ||
		die "apt-get could not install gcc; $advice"
	compiles || die "the packages are installed, but nothing compiles; $advice"
}

main
