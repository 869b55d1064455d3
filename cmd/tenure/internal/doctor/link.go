package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// diagnose finds out why a node does not answer. It makes connections of its own, also with TLS if
// the URL is without and the reverse.
func (s *server) diagnose(ctx context.Context, err error) Finding {
	var dns *net.DNSError
	var name x509.HostnameError
	var certificate x509.CertificateInvalidError
	switch {
	case errors.As(err, &dns):
		return s.finding(Fault, "no_such_host", "its name does not resolve on this machine: "+dns.Err, "correct the name in the URL, or the resolver")
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return s.finding(Fault, "tls_authority", "its certificate is signed by an authority that is not trusted here", "give the file with the authority's certificate with --tls-ca")
	case errors.As(err, &name):
		return s.finding(Fault, "tls_name", "its certificate is for another name: "+name.Error(), "use in the URL a name that the certificate has, or have one made with that name")
	case errors.As(err, &certificate):
		return s.finding(Fault, "tls_certificate", "its certificate is not valid: "+certificate.Error(), "have one made that is valid now and for servers (serverAuth), or set the clock of this machine right")
	}
	dialed, encrypted := s.dial(ctx, func(net.Conn) error { return nil }), s.option.TLSConfig != nil
	switch {
	case errors.Is(dialed, syscall.ECONNREFUSED), errors.Is(dialed, syscall.ENOENT):
		return s.finding(Fault, "down", "nothing listens there: connection refused", "start the server, or correct the address and the port in the URL")
	case dialed != nil:
		return s.finding(Fault, "unreachable", "it cannot be connected to: "+dialed.Error(), "see that the host is up, and that routes and firewalls let this machine through")
	case !encrypted && s.speaksTLS(ctx):
		return s.finding(Fault, "plain_to_tls", "it speaks TLS, and the URL is without", "write valkeys:// in place of valkey://, and give --tls-ca and, if it asks for one, --tls-cert and --tls-key")
	case encrypted && s.dial(ctx, ping) == nil:
		return s.finding(Fault, "tls_to_plain", "it speaks without TLS, and the URL is with", "write valkey:// in place of valkeys://, or set tls-port on the server")
	case encrypted:
		if f, found := s.clientCertificate(ctx); found {
			return f
		}
	}
	return s.finding(Fault, "timeout", "it accepts connections and does not answer: "+err.Error(),
		"see whether it is stopped, overloaded, or cut off without a word: valkey-cli PING on its host")
}

// late reports whether err is a timeout of a node that answers if it is given more time.
func (s *server) late(ctx context.Context, err error) (f Finding, found bool) {
	if redlock.ErrorType(err) != "timeout" {
		return f, false
	}
	patient, began := *s, time.Now()
	patient.option.Dialer.Timeout *= 4
	err = patient.ping(ctx)
	took, most := time.Since(began), s.option.Dialer.Timeout
	return s.finding(Fault, "timeout", fmt.Sprintf("it answers after %v, and a node may take %v", took.Round(time.Millisecond), most),
		"see whether it is overloaded; if it is far, give --node-timeout here, and replicas WithNodeTimeout or a longer TTL"), err == nil && took > most/2
}

// dial calls the function talk with a new connection to the node. Both the dial and talk must end
// within the node's timeout.
func (s *server) dial(ctx context.Context, talk func(net.Conn) error) error {
	network := "tcp"
	if strings.HasPrefix(s.addr, "/") {
		network = "unix"
	}
	within := s.option.Dialer.Timeout
	dialer := net.Dialer{Timeout: within}
	conn, err := dialer.DialContext(ctx, network, s.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(within)) // on a closed connection, talk fails
	return talk(conn)
}

// ping calls the function ping with a new connection to the node, with TLS if its URL is for TLS.
func (s *server) ping(ctx context.Context) error {
	return s.dial(ctx, func(conn net.Conn) error {
		if s.option.TLSConfig != nil {
			conn = tls.Client(conn, s.option.TLSConfig.Clone())
		}
		return ping(conn)
	})
}

// ping returns nil if the other side answers as a Valkey server does.
func ping(conn net.Conn) error {
	first := make([]byte, 1)
	_, err := io.WriteString(conn, "*1\r\n$4\r\nPING\r\n")
	if err == nil {
		_, err = io.ReadFull(conn, first)
	}
	if err == nil && first[0] != '+' && first[0] != '-' {
		err = errors.New("no answer of a server")
	}
	return err
}

// speaksTLS reports whether a server answers a TLS handshake, whatever its certificate is.
func (s *server) speaksTLS(ctx context.Context) bool {
	err := s.dial(ctx, func(conn net.Conn) error {
		return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
	})
	return err == nil || isAlert(err) // an alert, for example, asks for a certificate
}

// isAlert reports whether err is a TLS alert from the other side.
func isAlert(err error) bool {
	alert, is := errors.AsType[*net.OpError](err)
	return is && alert.Op == "remote error"
}

// clientCertificate checks whether a server refuses this process's certificate, or requires one
// that this process does not have. With TLS 1.3 the server says so only at the first read, so
// clientCertificate sends a ping.
func (s *server) clientCertificate(ctx context.Context) (f Finding, found bool) {
	err := s.ping(ctx)
	// The server closes the connection at once, so its alert may be lost.
	ended := isAlert(err) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	switch {
	case !ended:
		return f, false
	case s.option.TLSConfig.GetClientCertificate == nil:
		return s.finding(Fault, "tls_client_certificate", "it wants a certificate of its clients (tls-auth-clients), and this process has none",
			"give one with --tls-cert and --tls-key, of an authority that the server knows (its tls-ca-cert-file)"), true
	}
	seen := "it refuses this process's certificate"
	if isAlert(err) {
		seen += ": " + err.Error()
	}
	return s.finding(Fault, "tls_client_rejected", seen, "use one of an authority that the server knows (its tls-ca-cert-file), and that is valid now"), true
}
