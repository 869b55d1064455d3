package redlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
)

// Anybody who may publish can announce anything. What no release would say wakes nobody.
func TestAnnouncementsThatAreNone(t *testing.T) {
	for message, wakes := range map[string]bool{
		"0 owner":                   true,
		"86400000 owner":            true,
		"86400001 owner":            false,
		"9223372036854775 owner":    false, // overflows as nanoseconds
		"9223372036854775807 owner": false,
		"-1 owner":                  false,
		"owner":                     false,
		"1e3 owner":                 false,
		"":                          false,
	} {
		t.Run(message, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ns := newNotices(&Quorum{need: 2})
				w := ns.watch("channel")
				defer w.stop()
				ns.heard(valkey.PubSubMessage{Channel: "channel", Message: message})
				time.Sleep(2 * noticeGrace)
				require.Equal(t, wakes, len(w.wake) > 0)
			})
		})
	}
}
