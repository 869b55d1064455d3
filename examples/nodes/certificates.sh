#!/usr/bin/env bash
# Makes a certificate authority, a certificate for each node and one for the
# clients, for example:
#
#   certificates.sh tls a.example.net b.example.net c.example.net
#
# ca.key signs for all of them: keep it away from the nodes. A node gets ca.crt
# and its own two files as node.crt and node.key, a client ca.crt, client.crt
# and client.key. Names are those by which clients reach the nodes; IP addresses
# are good too. Run it again with the same directory for more nodes, and within
# the year to renew those that it is given, and the clients'. The authority is
# good for ten years.
set -euo pipefail
[ $# -ge 2 ] || {
	echo "usage: $0 DIRECTORY NODE..." >&2
	exit 2
}
days=365 dir=$1
shift
umask 077
mkdir -p "$dir"
cd "$dir"

# key FILE
key() { openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

# sign FILE NAME EXTENSIONS
sign() {
	key "$1.key"
	openssl req -new -key "$1.key" -subj "/CN=$2" |
		openssl x509 -req -CA ca.crt -CAkey ca.key -days "$days" -extfile <(printf '%s\n' "$3") -out "$1.crt" 2>/dev/null
}

if [ ! -e ca.key ]; then
	key ca.key
	openssl req -x509 -new -key ca.key -days "$((10 * days))" -subj '/CN=nodes' \
		-addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign' -out ca.crt
fi
sign client client extendedKeyUsage=clientAuth
for node in "$@"; do
	kind=DNS
	if [[ $node =~ ^[0-9.]+$ || $node == *:* ]]; then kind=IP; fi
	sign "$node" "$node" "subjectAltName=$kind:$node
extendedKeyUsage=serverAuth,clientAuth"
done
