package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// trouble is why a node does not answer.
type trouble struct{ code, seen, advice string }

// The codes of what is wrong with the way to a node.
const (
	codeDown           = "down"
	codeSilent         = "silent"
	codeNoSuchHost     = "no_such_host"
	codeUnreachable    = "unreachable"
	codePlainToTLS     = "plain_to_tls"
	codeTLSToPlain     = "tls_to_plain"
	codeAuthority      = "tls_authority"
	codeName           = "tls_name"
	codeCertificate    = "tls_certificate"
	codeClient         = "tls_client_certificate"
	codeClientRejected = "tls_client_rejected"
)

// diagnose finds out why a node does not answer: it tries the way itself, also the one that the URL
// does not name.
func (s *server) diagnose(ctx context.Context, err error) trouble {
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var certificate x509.CertificateInvalidError
	switch {
	case errors.As(err, &dns):
		return trouble{codeNoSuchHost, "its name does not resolve on this machine: " + dns.Err, "correct the name in the URL, or the resolver"}
	case errors.As(err, &authority):
		return trouble{codeAuthority, "its certificate is signed by an authority that is not trusted here", "give the file with the authority's certificate with --tls-ca"}
	case errors.As(err, &name):
		return trouble{codeName, "its certificate is for another name: " + name.Error(), "use in the URL a name that the certificate has, or have one made with that name"}
	case errors.As(err, &certificate):
		return trouble{codeCertificate, "its certificate is not valid: " + certificate.Error(), "renew it, or set the clock of this machine right"}
	}
	network, addr := "tcp", s.addr
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	dialer := net.Dialer{Timeout: s.option.Dialer.Timeout}
	conn, dialed := dialer.DialContext(ctx, network, addr)
	switch {
	case errors.Is(dialed, syscall.ECONNREFUSED), errors.Is(dialed, syscall.ENOENT):
		return trouble{codeDown, "nothing listens there: connection refused", "start the server, or correct the address and the port in the URL"}
	case dialed != nil:
		return trouble{codeUnreachable, "it cannot be connected to: " + dialed.Error(), "see that the host is up, and that routes and firewalls let this machine through"}
	}
	conn.Close()
	if s.option.TLSConfig == nil {
		if s.speaksTLS(ctx, dialer, network) {
			return trouble{codePlainToTLS, "it speaks TLS, and the URL is without", "write valkeys:// in place of valkey://, and give --tls-ca and, if it asks for one, --tls-cert and --tls-key"}
		}
	} else {
		if s.speaksPlain(ctx, dialer, network) {
			return trouble{codeTLSToPlain, "it speaks without TLS, and the URL is with", "write valkey:// in place of valkeys://, or set tls-port on the server"}
		}
		if t, found := s.clientCertificate(ctx, dialer, network); found {
			return t
		}
	}
	return trouble{codeSilent, "it accepts connections and does not answer: " + err.Error(),
		"see whether it is stopped, overloaded, or cut off without a word: valkey-cli PING on its host"}
}

// speaksTLS reports whether a server answers a TLS handshake, whatever its certificate is.
func (s *server) speaksTLS(ctx context.Context, dialer net.Dialer, network string) bool {
	conn, err := dialer.DialContext(ctx, network, s.addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(dialer.Timeout)) // a connection that is closed says so itself
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	err = secure.HandshakeContext(ctx)
	var alert *net.OpError
	return err == nil || errors.As(err, &alert) && alert.Op == "remote error" // it asks for a certificate, say
}

// speaksPlain reports whether a server answers without TLS as Valkey does.
func (s *server) speaksPlain(ctx context.Context, dialer net.Dialer, network string) bool {
	conn, err := dialer.DialContext(ctx, network, s.addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(dialer.Timeout))
	first := make([]byte, 1)
	if _, err := io.WriteString(conn, "*1\r\n$4\r\nPING\r\n"); err != nil {
		return false
	}
	_, err = io.ReadFull(conn, first)
	return err == nil && (first[0] == '+' || first[0] == '-')
}

// clientCertificate finds out whether a server refuses the certificate of this process, or that
// there is none. With TLS 1.3 it says so when something is read.
func (s *server) clientCertificate(ctx context.Context, dialer net.Dialer, network string) (trouble, bool) {
	conn, err := dialer.DialContext(ctx, network, s.addr)
	if err != nil {
		return trouble{}, false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(dialer.Timeout))
	config := s.option.TLSConfig.Clone()
	secure := tls.Client(conn, config)
	if err = secure.HandshakeContext(ctx); err == nil {
		if _, err = io.WriteString(secure, "*1\r\n$4\r\nPING\r\n"); err == nil {
			_, err = io.ReadFull(secure, make([]byte, 1))
		}
	}
	// The server's alert may be lost: it ends the connection at once.
	var alert *net.OpError
	refused := errors.As(err, &alert) && alert.Op == "remote error"
	ended := refused || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	switch {
	case !ended:
		return trouble{}, false
	case config.GetClientCertificate == nil:
		return trouble{codeClient, "it wants a certificate of its clients (tls-auth-clients), and this process has none",
			"give one with --tls-cert and --tls-key, of an authority that the server knows (its tls-ca-cert-file)"}, true
	default:
		seen := "it refuses this process's certificate"
		if refused {
			seen += ": " + err.Error()
		}
		return trouble{codeClientRejected, seen,
			"use one of an authority that the server knows (its tls-ca-cert-file), and that is valid now"}, true
	}
}
