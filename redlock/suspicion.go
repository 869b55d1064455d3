package redlock

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// suspicion is why a node does not answer that never has, with what may be wrong with its URL: a
// server that is spoken to with TLS and expects none, or the other way round, says nothing of it.
type suspicion struct {
	err  error
	hint string
}

func (s *suspicion) Error() string { return s.err.Error() + " (" + s.hint + ")" }

func (s *suspicion) Unwrap() error { return s.err }

// What a node that has never answered may be asked wrongly.
const (
	perhapsPlain = "it has never answered with TLS: if its port has none, write valkey:// in place of valkeys://"
	perhapsTLS   = "it has never answered: if its port is for TLS, write valkeys:// in place of valkey://"
	perhapsMTLS  = "it has never answered: if it wants a TLS certificate of its clients (tls-auth-clients, which is yes by default), " +
		"give one with WithClientOption, in TLSConfig.Certificates"
)

// suspect adds to why a node does not answer what may be the reason, if it never has.
func (n *node) suspect(err error) error {
	var known *suspicion
	if n.connect == nil || n.answered.Load() || errors.As(err, &known) || isServerError(err) {
		return err
	}
	var noRecord tls.RecordHeaderError
	timeout := isTimeout(err) || errors.Is(err, ErrTimeout)
	switch {
	case n.encrypted && (timeout || errors.As(err, &noRecord)): //mutant:tls-unsuspected
		return &suspicion{err, perhapsPlain}
	case timeout || !isCut(err):
		return err
	case n.encrypted: //mutant:client-certificate-unsuspected
		return &suspicion{err, perhapsMTLS}
	default:
		return &suspicion{err, perhapsTLS}
	}
}

// isCut reports whether the server ended a connection that it had accepted.
func isCut(err error) bool {
	var alert *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &alert) && alert.Op == "remote error" // a TLS alert, see crypto/tls
}
