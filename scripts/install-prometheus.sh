#!/usr/bin/env bash
# Makes sure prometheus and promtool are in PATH: promtool checks and tests the
# rules of examples/observability, and prometheus runs them. 2.42 is enough.
#
# Present: prints the versions and exits 0. Missing: installs the distribution's
# package prometheus through apt-get, as root or through `sudo -n`. The package
# brings a service, which is neither started nor left enabled. Where that is not
# possible: one line of advice, exit 1.
set -euo pipefail

advice='install Prometheus 2.42 or newer with promtool: Debian and Ubuntu: prometheus, Fedora: golang-github-prometheus, Homebrew: prometheus'

say() { printf 'install-prometheus: %s\n' "$*"; }
die() {
	say "$*" >&2
	exit 1
}

present() { command -v prometheus >/dev/null && command -v promtool >/dev/null; }

# versions prints the first line of what each says.
versions() {
	local program output
	for program in prometheus promtool; do
		output=$("$program" --version 2>&1)
		printf '%s\n' "${output%%$'\n'*}"
	done
}

policy=/usr/sbin/policy-rc.d

# forbid_services keeps the package's scripts from starting the service: they ask
# this program, and 101 means no. A machine that has one keeps its own.
forbid_services() {
	[ ! -e "$policy" ] || return 0
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	trap 'rm -f "$policy"' EXIT
}

run_apt() {
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@"
}

main() {
	if present; then
		versions
		return 0
	fi
	command -v apt-get >/dev/null || die "prometheus or promtool is missing and there is no apt-get; $advice"
	if [ "$(id -u)" -ne 0 ]; then
		sudo -n true 2>/dev/null || die "prometheus or promtool is missing and installing it needs root; $advice"
		exec sudo -n bash "${BASH_SOURCE[0]}"
	fi

	say 'installing the package prometheus'
	forbid_services
	run_apt update || say 'apt-get update reported errors; trying to install nevertheless' >&2
	# Recommended is the node exporter, which would be a service too.
	run_apt install -y --no-install-recommends prometheus </dev/null >/dev/null ||
		die "apt-get could not install prometheus; $advice"
	# Tests start their own servers on free ports: the packaged service is not needed, at the next boot neither.
	if [ -d /run/systemd/system ]; then
		systemctl disable --now prometheus >/dev/null 2>&1 || true
	elif command -v systemctl >/dev/null; then
		systemctl disable prometheus >/dev/null 2>&1 || true
	fi
	if command -v update-rc.d >/dev/null; then
		update-rc.d prometheus disable >/dev/null 2>&1 || true
	fi
	present || die 'the package is installed, but prometheus and promtool are not in PATH'
	versions
}

main
