package redlock

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/resp"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// answersItself reports whether an error that several calls got together came from the server,
// other than because it does not know the script: one of them may be the reason.
func answersItself(err error) bool { return isServerError(err) && !isNoScript(err) }

// isServerError reports whether the server answered, if only with an error, so that the connection
// is fine.
func isServerError(err error) bool {
	if refused := (*resp.Error)(nil); errors.As(err, &refused) { //mutant:refused-connection-is-fine
		return false
	}
	var answered *valkey.ValkeyError // valkey.Nil too
	var known *ConditionError
	var fault *wire.Fault
	return errors.As(err, &answered) || errors.As(err, &known) || errors.As(err, &fault) || errors.Is(err, wire.ErrUnexpected)
}

// isBroken reports whether the connection was the reason, other than by taking too long.
func isBroken(err error) bool { return !isServerError(err) && !isTimeout(err) }

func isNoScript(err error) bool {
	e, ok := valkey.IsValkeyErr(err)
	return ok && e.IsNoScript()
}

// isTimeout reports whether something took too long. A connection that a kernel has found dead is
// broken, although its error calls itself a timeout.
func isTimeout(err error) bool {
	var ne net.Error
	if errors.Is(err, syscall.ETIMEDOUT) { //mutant:dead-connection-is-slow
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &ne) && ne.Timeout())
}
