package redlock

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// suspicion is an error of a node that does not answer, with a hint at what may be wrong.
type suspicion struct {
	err  error
	hint string
}

func (s *suspicion) Error() string { return s.err.Error() + " (" + s.hint + ")" }

func (s *suspicion) Unwrap() error { return s.err }

// Hints for a node that has never answered: it may be spoken to in the wrong way.
const (
	perhapsPlain = "it has never answered with TLS: it is stopped or overloaded; or if its port has none, write valkey:// in place of valkeys://"
	perhapsTLS   = "it has never answered: if its port is for TLS, write valkeys:// in place of valkey://"
	perhapsMTLS  = "it has never answered: if it wants a certificate of its clients (tls-auth-clients, yes by default), " + giveOne
)

// Hints for a server that refuses TLS.
const (
	refusesOwn = "it refuses the certificate that this process shows, or that there is none: " + giveOne
	giveOne    = "give one that is valid by its clock, for clients (clientAuth), of an authority in its tls-ca-cert-file (WithClientOption, TLSConfig.Certificates)"
	otherTLS   = "let both speak one version of TLS: tls-protocols on the server, TLSConfig.MinVersion here"
)

// Hints for an error of a certificate or a name, and for a server that is silent.
const (
	unknownAuthority = "give the authority that signed the server's certificate with WithClientOption, in TLSConfig.RootCAs"
	otherName        = "use a name that the server's certificate has, or give it with WithClientOption, in TLSConfig.ServerName"
	invalid          = "give the server a certificate that is valid now and for servers (serverAuth), or set this machine's clock right"
	expired          = "renew the certificate that this process shows, or set the server's clock right"
	noSuchHost       = "the name of the node does not resolve on this machine"
	unresolved       = "the name of the node is not resolved in time on this machine: ask for it with getent hosts, and look at the name servers in /etc/resolv.conf"
	fellSilent       = "it has answered before: it is stopped, overloaded, or cut off without a word; ask it with valkey-cli PING"
	heldBack         = "it answers INFO and TIME, and holds back what may write: end a CLIENT PAUSE with CLIENT UNPAUSE, wait for a FAILOVER or end it with FAILOVER ABORT, " +
		"or look for a disk that hangs, or too much work"
)

// suspect adds to the error of a node a hint at the reason, where there may be one. A server that
// has never answered may expect no TLS and be spoken to with TLS, or the other way round: it does
// not say so.
func (m *member) suspect(err error) error {
	if wire.Is[*suspicion](err) || wire.IsServerError(err) {
		return err
	}
	if hint := hintOf(err); hint != "" {
		return &suspicion{err, hint}
	}
	if m.answered.Load() {
		return err
	}
	timeout, encrypted := errors.Is(err, ErrTimeout), m.option.TLSConfig != nil
	switch {
	case encrypted && (timeout || wire.Is[tls.RecordHeaderError](err)):
		return &suspicion{err, perhapsPlain}
	case timeout || !wire.IsCut(err):
		return err
	case encrypted:
		return &suspicion{err, perhapsMTLS}
	default:
		return &suspicion{err, perhapsTLS}
	}
}

// isAlert reports whether the server has refused TLS for a reason that has that text: an alert has
// no type, see crypto/tls.
func isAlert(err error, text string) bool {
	_, alert, is := strings.Cut(err.Error(), "remote error: tls: ")
	return is && strings.Contains(alert, text)
}

// hintOf returns what to do about an error of a certificate or a name; empty for any other error.
func hintOf(err error) string {
	var host *net.DNSError
	if said, is := errors.AsType[*suspicion](err); is {
		err = said.err // hints have the words of alerts, too
	}
	switch {
	case wire.Is[x509.UnknownAuthorityError](err):
		return unknownAuthority
	case wire.Is[x509.HostnameError](err):
		return otherName
	case wire.Is[x509.CertificateInvalidError](err):
		return invalid
	case isAlert(err, "expired certificate"):
		return expired
	case isAlert(err, "protocol version"):
		return otherTLS
	case isAlert(err, "certificate"):
		return refusesOwn
	case errors.As(err, &host) && host.IsNotFound:
		return noSuchHost
	}
	return ""
}
