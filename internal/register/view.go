package register

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// Answers of a node about a register, as the scripts encode them.
const (
	silent   byte = 0   // nothing
	knows    byte = 'k' // it knows the register, and has promised if it was asked to; to a restoration: it knew it before
	unknown  byte = 'u' // it does not know the register, or cannot take it
	refused  byte = 'r' // it has promised a later ballot
	takes    byte = 't' // it took a write, or a restoration
	version  byte = 'v' // another version of this library has written it
	maxToken      = 1<<53 - 1
)

// view is what one node says of one register.
type view struct {
	says    byte
	process string // run_id of the answering server process
	promise uint64 // as it was before the ballot of this read
	ballot  uint64
	step    uint64
	left    time.Duration // until the register expires
	value   string
	why     error // for version: the error
}

// isNothing reports whether the register was never begun or written.
func (v *view) isNothing() bool { return v.promise == 0 && v.ballot == 0 }

// merged combines the views whose answer is in saying: the largest promise, and the value that was
// written last.
func merged(views []view, saying string) *view {
	all := &view{}
	for i := range views {
		v := &views[i]
		if count(views[i:i+1], saying) == 0 {
			continue
		}
		if v.ballot > all.ballot || v.ballot == all.ballot && v.step > all.step {
			all.ballot, all.step, all.value = v.ballot, v.step, v.value
		}
		all.promise, all.left = max(all.promise, v.promise), max(all.left, v.left)
	}
	return all
}

// count returns how many views have an answer in saying.
func count(views []view, saying string) (n int) {
	for i := range views {
		if views[i].says != silent && strings.IndexByte(saying, views[i].says) >= 0 {
			n++
		}
	}
	return n
}

// parseView parses the answer of a script about one register. Text of any other form counts as
// silent.
func parseView(process, text string) view {
	kind, rest, _ := strings.Cut(text, " ")
	if len(kind) != 1 {
		return view{}
	}
	v := view{says: kind[0], process: process}
	switch v.says {
	case takes, refused:
		return v
	case version:
		v.why = &redlock.ConditionError{Condition: redlock.ConditionOtherVersion, Detail: fmt.Sprintf("the register has version %.3q, and this library knows 1", rest)}
		return v
	case knows, unknown:
	default:
		return view{}
	}
	if rest == "" {
		return v
	}
	fields := strings.SplitN(rest, " ", 5)
	if len(fields) != 5 || len(fields[4]) > MaxValue {
		return view{}
	}
	var numbers [4]uint64
	for i := range numbers {
		n, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil || n > maxToken {
			return view{}
		}
		numbers[i] = n
	}
	v.promise, v.ballot, v.step, v.value = numbers[0], numbers[1], numbers[2], fields[4]
	v.left = redlock.MaxKeep
	if ms := numbers[3]; ms < uint64(redlock.MaxKeep/time.Millisecond) {
		v.left = time.Duration(ms) * time.Millisecond
	}
	return v
}

// milliseconds formats a duration, rounded up.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
