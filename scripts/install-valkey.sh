#!/usr/bin/env bash
# Makes sure valkey-server is in PATH; the tests start real servers from it.
# Valkey 8 or newer is what the project is tested on; 7.2 works.
#
# Present: prints the version and exits 0. Missing: installs the distribution's
# package through apt-get, as root or through `sudo -n`; Debian bookworm has it
# in bookworm-backports, which is then added to the machine's own entry for the
# Debian archive. Where that is not possible: one line of advice, exit 1.
set -euo pipefail

advice='install Valkey 8 or newer: Debian and Ubuntu: valkey-server (bookworm: from bookworm-backports), Fedora: valkey, Homebrew: valkey'

say() { printf 'install-valkey: %s\n' "$*"; }
die() {
	say "$*" >&2
	exit 1
}

# add_backports FILE CODENAME adds CODENAME-backports to the first entry of an
# apt source file that offers binary packages of CODENAME's main component: to
# the entry's own Suites line (deb822, *.sources), or as a second line derived
# from the entry (one-line style). A file that has the suite stays untouched.
# Status 1: the file has no such entry.
add_backports() {
	local file=$1 codename=$2 rewritten
	case $file in
	*.sources) rewritten=$(backports_deb822 "$file" "$codename") || return 1 ;;
	*) rewritten=$(backports_oneline "$file" "$codename") || return 1 ;;
	esac
	if [ "$rewritten" != "$(cat "$file")" ]; then
		# Written in place: the file keeps its owner and mode.
		printf '%s\n' "$rewritten" >"$file"
	fi
}

# backports_deb822 FILE CODENAME prints the deb822 file with the suite added.
backports_deb822() {
	awk -v suite="$2" '
		function has(list, word) {
			gsub(/[ \t]+/, " ", list)
			return index(" " list " ", " " word " ") > 0
		}
		function end_stanza() {
			if (has(value["types"], "deb") && has(value["components"], "main") &&
			    !has(tolower(value["enabled"]), "no")) {
				if (has(value["suites"], suite "-backports")) present = 1
				if (!target && has(value["suites"], suite)) target = suites_line
			}
			split("", value)
			field = ""
		}
		{ line[NR] = $0 }
		/^[ \t]*$/ { end_stanza(); next }
		/^#/ { next }
		/^[ \t]/ { value[field] = value[field] " " $0; next }
		{
			field = tolower(substr($0, 1, index($0, ":") - 1))
			value[field] = substr($0, index($0, ":") + 1)
			if (field == "suites") suites_line = NR
		}
		END {
			end_stanza()
			if (!present && !target) exit 1
			for (i = 1; i <= NR; i++) {
				if (!present && i == target) {
					sub(/[ \t]*$/, "", line[i])
					line[i] = line[i] " " suite "-backports"
				}
				print line[i]
			}
		}' "$1"
}

# backports_oneline FILE CODENAME prints the one-line-style file with the suite added.
backports_oneline() {
	awk -v suite="$2" '
		function offers(line, name,    words, n, i) {
			sub(/#.*/, "", line)
			if (!match(line, prefix)) return 0
			n = split(substr(line, RLENGTH + 1), words)
			if (words[1] != name) return 0
			for (i = 2; i <= n; i++) if (words[i] == "main") return 1
			return 0
		}
		BEGIN { prefix = "^[ \t]*deb[ \t]+(\\[[^]]*\\][ \t]*)?[^][ \t]+[ \t]+" }
		{ line[NR] = $0 }
		offers($0, suite "-backports") { present = 1 }
		!target && offers($0, suite) { target = NR }
		END {
			if (!present && !target) exit 1
			for (i = 1; i <= NR; i++) {
				print line[i]
				if (!present && i == target) {
					match(line[i], prefix)
					print substr(line[i], 1, RLENGTH) suite "-backports" substr(line[i], RLENGTH + length(suite) + 1)
				}
			}
		}' "$1"
}

# enable_backports CODENAME makes apt know CODENAME-backports, in whichever file
# the machine keeps its Debian entry. It asks apt first: the suite may stand in
# a file of its own.
enable_backports() {
	local codename=$1 file
	if apt-get --print-uris update 2>/dev/null | grep "/dists/$codename-backports/" >/dev/null; then
		return 0
	fi
	for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list \
		/etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
		if [ -f "$file" ] && add_backports "$file" "$codename"; then
			say "added $codename-backports to $file"
			return 0
		fi
	done
	return 1
}

# run_apt runs apt-get so that it neither asks nor, under a System V init, starts
# the packaged service (runlevel 1 has none).
run_apt() {
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@"
}

# release_field NAME prints a field of os-release, empty when absent.
release_field() {
	(
		# shellcheck disable=SC1091
		. /etc/os-release 2>/dev/null || true
		printf '%s' "${!1-}"
	)
}

main() {
	local codename target=()
	if command -v valkey-server >/dev/null; then
		valkey-server --version
		return 0
	fi
	command -v apt-get >/dev/null || die "valkey-server is missing and there is no apt-get; $advice"
	if [ "$(id -u)" -ne 0 ]; then
		sudo -n true 2>/dev/null || die "valkey-server is missing and installing it needs root; $advice"
		exec sudo -n bash "${BASH_SOURCE[0]}"
	fi

	codename=$(release_field VERSION_CODENAME)
	if [ "$(release_field ID)" = debian ] && [ "$codename" = bookworm ]; then
		enable_backports "$codename" || die "no apt source offers Debian $codename; $advice"
		target=(-t "$codename-backports")
	fi
	say 'installing the package valkey-server'
	run_apt update || say 'apt-get update reported errors; trying to install nevertheless' >&2
	run_apt install -y --no-install-recommends ${target[@]+"${target[@]}"} valkey-server </dev/null >/dev/null ||
		die "apt-get could not install valkey-server; $advice"
	# The tests start their own servers on free ports: the packaged service is not needed.
	if [ -d /run/systemd/system ]; then
		systemctl disable --now valkey-server >/dev/null 2>&1 || true
	fi
	command -v valkey-server >/dev/null || die "the package is installed, but valkey-server is not in PATH"
	valkey-server --version
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	main
fi
