#!/usr/bin/env bash
# Makes sure that what the targets run is there: scripts/install.sh NAME...
#
#   valkey      valkey-server: tests start real servers from it. 8 or newer is what is tested; 7.2 works
#   compiler    a C compiler: tests that move a server's clock need it, and so does the race detector
#   node        Node.js 18 or newer: a test runs the library's clock in it
#   make        what runs the targets
#   openssl     a test makes certificates with it
#   curl        a test of the pages' commands gives an order with it
#   prometheus  prometheus and promtool 2.42 or newer, for the rules and the dashboard of examples/observability
#   chromium    the tests of the pages drive it; TENURE_CHROMIUM names another Chrome
#   axe         bin/axe/axe.min.js: tests look with it for what not everybody can use in a page
#
# What is there stays as it is. What is missing is installed with apt-get, as root or through `sudo -n`, and axe-core is
# fetched with npm in one exact version; nothing of it is committed. No service of a package is started or left enabled.
# Where that is not possible: one line of advice, exit 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

axe_version=4.14.1
axe_sha256=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c

die() {
	printf 'install: %s\n' "$*" >&2
	exit 1
}

# packages NAME prints the Debian packages that have it; other distributions call most of them the same.
packages() {
	case $1 in
	valkey) echo valkey-server ;;
	compiler) echo gcc libc6-dev ;;
	node) echo nodejs ;;
	chromium) echo chromium fonts-dejavu-core ;;
	make | openssl | curl | prometheus | npm) echo "$1" ;;
	*) die "there is no $1; the names are in the first lines of scripts/install.sh" ;;
	esac
}

present() {
	case $1 in
	valkey) command -v valkey-server ;;
	compiler) [ "$(uname -s)" != Linux ] || printf '#include <time.h>\n' | "$(command -v cc || command -v gcc)" -fsyntax-only -x c - ;;
	prometheus) command -v prometheus && command -v promtool ;;
	chromium) command -v "${TENURE_CHROMIUM:-chromium}" ;;
	*) command -v "$1" ;;
	esac >/dev/null 2>&1
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

apt() {
	# In runlevel 1, a System V init starts no service.
	as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@" </dev/null >/dev/null
}

# backports lets apt know the backports of Debian bookworm, which has Valkey only there, at the machine's own archive.
backports() {
	local uris archive
	uris=$(apt-get --print-uris update) || return 1
	if grep -q '/dists/bookworm-backports/' <<<"$uris"; then return 0; fi
	archive=$(sed -n "s,^'\(.*\)/dists/bookworm/InRelease'.*,\1,p" <<<"$uris" | head -n 1)
	[ -n "$archive" ] || return 1
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive bookworm-backports main" |
		as_root tee /etc/apt/sources.list.d/bookworm-backports.list >/dev/null
}

# install NAME installs its packages where it is missing.
install() {
	local wanted release='' service
	wanted=$(packages "$1")
	if present "$1"; then return 0; fi
	[ "$1:${TENURE_CHROMIUM:+named}" != chromium:named ] || die "TENURE_CHROMIUM names $TENURE_CHROMIUM, which is not there"
	local advice="$1 is missing: install the packages $wanted (on other systems than Debian, what they are called there)"
	command -v apt-get >/dev/null || die "$advice"
	[ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null || die "$advice; root is needed for it"
	if [ "$1" = valkey ] && grep -qs '^VERSION_CODENAME=bookworm$' /etc/os-release; then
		backports || die "$advice, from bookworm-backports"
		release=bookworm-backports
	fi
	echo "install: apt-get install $wanted"
	# A package's scripts ask policy-rc.d whether they may start a service: 101 means no. A machine that has one keeps it.
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		printf '#!/bin/sh\nexit 101\n' | as_root env install -m 755 /dev/stdin /usr/sbin/policy-rc.d
		trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
	fi
	apt update || echo 'install: apt-get update reported errors; trying to install nevertheless' >&2
	# shellcheck disable=SC2086
	apt install -y --no-install-recommends ${release:+-t "$release"} $wanted || die "apt-get failed; $advice"
	for service in valkey-server prometheus; do
		case " $wanted " in *" $service "*) as_root systemctl disable --now "$service" >/dev/null 2>&1 || true ;; esac
	done
	present "$1" || die "the packages $wanted are installed, but $1 is not there"
}

axe() {
	local scratch
	if sha256sum --check --status <<<"$axe_sha256  bin/axe/axe.min.js" 2>/dev/null; then return 0; fi
	install npm
	scratch=$(mktemp -d)
	npm pack --silent --pack-destination "$scratch" "axe-core@$axe_version" >/dev/null ||
		die "npm could not fetch it; put axe.min.js of axe-core $axe_version at bin/axe/axe.min.js"
	mkdir -p bin/axe
	tar -xzf "$scratch/axe-core-$axe_version.tgz" -C bin/axe --strip-components=1 package/axe.min.js package/LICENSE
	rm -rf "$scratch"
	sha256sum --check --status <<<"$axe_sha256  bin/axe/axe.min.js" || die "npm brought another file than axe-core $axe_version has"
}

for name in "$@"; do
	if [ "$name" = axe ]; then axe; else install "$name"; fi
done
