package node

import (
	"errors"

	"github.com/tenure-dev/tenure/internal/clock"
)

// A server may answer what it is asked about itself, and hold back whatever may write: CLIENT PAUSE
// and FAILOVER make it do so, and a disk that hangs may. No lease can be had on it then. So what
// was not answered of that is made good by nothing but an answer to the same sort, and the trial is
// such a question: it is asked as soon as the server answers anything, and from time to time.

// ErrHeldBack is the ErrTimeout of a server that answers, and answers no script that may write.
var ErrHeldBack = errors.New("it answers INFO and TIME, and no script that may write")

// hearing is what a server has answered of late.
type hearing struct {
	mute    bool          // a script that may write was not answered in time, and none has been since
	tells   bool          // while it is mute, it has answered something else
	trialAt clock.Instant // while it is mute: when it is to be tried
}

// heard takes how an exchange went, which may have carried a script that may write. It returns how
// that counts, and whether it does: an answer of a mute server does not.
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

// due is when the server is to be tried; never while it answers.
func (h *hearing) due() clock.Instant {
	if !h.mute {
		return never
	}
	return h.trialAt
}
