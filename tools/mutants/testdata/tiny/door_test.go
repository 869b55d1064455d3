package tiny

import (
	"os"
	"testing"
)

func TestWrongKey(t *testing.T) {
	d := &Door{}
	if d.Open(8) {
		t.Error("opened by a wrong key")
		if os.Getenv("RAPID_NOFAILFILE") != "true" {
			_ = os.WriteFile("case.fail", []byte("8"), 0o600)
		}
	}
}

func TestRightKey(t *testing.T) {
	d := &Door{}
	if !d.Open(7) {
		t.Error("not opened")
	}
}

func TestVisitors(t *testing.T) {
	d := &Door{}
	d.Open(7)
	if guests := make([]string, d.Visitors()); guests[0] != "" {
		t.Error("who is that?")
	}
}

var visits int

func TestThirdVisit(t *testing.T) {
	visits++
	d := &Door{}
	d.Open(7)
	if visits == 3 && d.Visitors() != 3 {
		t.Error("a fourth one")
	}
}
