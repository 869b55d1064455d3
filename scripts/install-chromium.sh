#!/usr/bin/env bash
# Makes sure chromium is in PATH: the tests of the pages drive it. Any release of
# the last years works.
#
# Present, or named by TENURE_CHROMIUM: prints the version and exits 0. Missing:
# installs the distribution's package through apt-get, as root or through
# `sudo -n`. Where that is not possible: one line of advice, exit 1.
set -euo pipefail

advice='install Chromium: Debian: chromium, Fedora: chromium, Homebrew: chromium; or name a Chrome by TENURE_CHROMIUM'

say() { printf 'install-chromium: %s\n' "$*"; }
die() {
	say "$*" >&2
	exit 1
}

run_apt() {
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@"
}

main() {
	local program=${TENURE_CHROMIUM:-chromium}
	if command -v "$program" >/dev/null; then
		"$program" --version 2>/dev/null
		return 0
	fi
	[ "$program" = chromium ] || die "TENURE_CHROMIUM names $program, which is not there"
	command -v apt-get >/dev/null || die "chromium is missing and there is no apt-get; $advice"
	if [ "$(id -u)" -ne 0 ]; then
		sudo -n true 2>/dev/null || die "chromium is missing and installing it needs root; $advice"
		exec sudo -n bash "${BASH_SOURCE[0]}"
	fi

	say 'installing the package chromium'
	run_apt update || say 'apt-get update reported errors; trying to install nevertheless' >&2
	run_apt install -y --no-install-recommends chromium fonts-dejavu-core </dev/null >/dev/null ||
		die "apt-get could not install chromium; $advice"
	command -v chromium >/dev/null || die 'the package is installed, but chromium is not in PATH'
	chromium --version 2>/dev/null
}

main
