#!/usr/bin/env bash
# Makes sure there is Node.js: a test runs the demonstration's WebAssembly
# module with it. Version 18 or newer is enough.
#
# Present: exits 0. Missing: installs the distribution's package nodejs through
# apt-get, as root or through `sudo -n`. Where that is not possible: one line of
# advice, exit 1.
set -euo pipefail

advice='install Node.js 18 or newer: Debian, Ubuntu and Fedora: nodejs, Homebrew: node'

say() { printf 'install-node: %s\n' "$*"; }
die() {
	say "$*" >&2
	exit 1
}

main() {
	if command -v node >/dev/null; then return 0; fi
	command -v apt-get >/dev/null || die "there is no node and no apt-get; $advice"
	if [ "$(id -u)" -ne 0 ]; then
		sudo -n true 2>/dev/null || die "there is no node and installing it needs root; $advice"
		exec sudo -n bash "${BASH_SOURCE[0]}"
	fi
	say 'installing the package nodejs'
	export DEBIAN_FRONTEND=noninteractive
	local options=(-qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120)
	apt-get "${options[@]}" update || say 'apt-get update reported errors; trying to install nevertheless' >&2
	apt-get "${options[@]}" install -y --no-install-recommends nodejs </dev/null >/dev/null ||
		die "apt-get could not install nodejs; $advice"
	command -v node >/dev/null || die "the package is installed, but there is no node; $advice"
}

main
