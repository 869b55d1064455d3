package node

import (
	"errors"

	"github.com/tenure-dev/tenure/internal/clock"
)

// A server may answer questions about itself, and hold back all commands that may write: CLIENT
// PAUSE and FAILOVER make it do so, and a disk that hangs may. Then no lease can be acquired on it.
// So once a script that may write was not answered in time, only the answer to such a script shows
// that the server is well. The trial is such a script. It is sent as soon as the server answers
// anything, and then from time to time.

// ErrHeldBack replaces ErrTimeout for a server that answers, but answers no script that may write.
var ErrHeldBack = errors.New("it answers INFO and TIME, and no script that may write")

// hearing is what a server has answered lately.
type hearing struct {
	mute    bool          // a script that may write was not answered in time, and none has been since
	tells   bool          // while it is mute: it has answered something else
	trialAt clock.Instant // while it is mute: when to send it the next trial
}

// heard takes the outcome of an exchange; writes says whether it carried a script that may write.
// heard returns the outcome that counts, and whether it counts: an answer of a mute server to
// anything else does not.
func (h *hearing) heard(err error, writes bool, now clock.Instant) (counts error, does bool) {
	switch {
	case err == nil && writes:
		*h = hearing{}
	case err == nil && h.mute:
		if !h.tells {
			h.tells, h.trialAt = true, now
		}
		return nil, false
	case err == ErrTimeout && writes:
		if h.tells {
			err = ErrHeldBack
		}
		h.mute, h.trialAt = true, now.Add(recheckEvery)
	case err == ErrTimeout:
		h.tells = false
	}
	return err, true
}

// due returns when the next trial is due; never while the server answers.
func (h *hearing) due() clock.Instant {
	if !h.mute {
		return never
	}
	return h.trialAt
}
