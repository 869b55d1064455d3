package model

// The largest sizes that a state has room for.
const (
	maxNodes    = 5
	maxAttempts = 3
)

// state is the whole system at one moment. It holds only small numbers, without gaps, so that it is
// compared and copied as a value. Fields beyond a configuration's number of nodes and attempts are
// zero.
type state struct {
	nodes    [maxNodes]node
	attempts [maxAttempts]attempt
	last     int8   // the largest token that was granted
	starts   uint8  // attempts begun, where the configuration limits them
	restarts uint8  // nodes restarted, likewise
	others   uint8  // grants of other keys, likewise
	lost     uint8  // keys that running nodes have lost, likewise
	taken    uint16 // without clocks: the set of tokens that were granted
}

// count returns how many nodes are as told.
func count[N any](nodes []N, is func(*N) bool) (sum int) {
	for n := range nodes {
		if is(&nodes[n]) {
			sum++
		}
	}
	return sum
}

// node is one server, with a cell for each attempt.
type node struct {
	owner   uint8 // owner value in the key; 0 without a key
	left    uint8 // ticks until the key expires
	age     uint8 // ticks since the restart, up to the configuration's gate
	counter int8  // fencing counter, see token.go; other keys may share it
	cells   [maxAttempts]cell
}

// cell is what is under way between an attempt and a node, and what the attempt knows of the node.
type cell struct {
	queue  command // commands in flight: a set, run in the order of its bits
	moved  command // commands in the queue that count on a young process: with the defect BeforeOnly only
	reply  reply   // the node's answer that the attempt has not heard or not used yet
	chosen bool    // the node granted, and is asked to raise its counter in a second round
	sent   uint8   // ticks left of the proof that the last extension can give, from its sending on
	proof  uint8   // ticks for which the node is known to have the key; 0 if it is not
	told   bool    // the node's last answer was that it does not have the key
}

// command is a set of commands. A queue has at most one of each, and the client sends them in this
// order.
type command uint8

const (
	cmdSet      command = 1 << iota // SET NX
	cmdRaise                        // ZADD GT of the first proposal, behind it
	cmdSetAgain                     // the same two of a later round, behind some that are still in flight
	cmdRaiseAgain
	cmdAgree  // ZADD GT of a second round
	cmdStale  // an extension whose connection broke: its answer is not heard
	cmdExtend // an extension
	cmdRelease
)

// Commands that go out together, in this order.
const (
	cmdPair  = cmdSet | cmdRaise
	cmdAfter = cmdSetAgain | cmdRaiseAgain
	cmdSets  = cmdSet | cmdSetAgain
	cmdZadds = cmdRaise | cmdRaiseAgain
)

type reply uint8

const (
	noReply  reply = iota
	early          // the counter was raised to the proposal before there was a key: with the defect RaiseFirst only
	granted        // the key is the attempt's
	raised         // and after that the counter was raised to the proposal
	settled        // the counter was raised to the proposal of the second round
	extended       // extend: the key was the attempt's own
	refilled       // extend: the key was gone and has been put back
	gone           // extend: the key was gone or another's
)

// attempt is one acquisition and the lease that results, with an owner value of its own.
type attempt struct {
	phase phase
	left  uint8 // ticks left of the proof of its acquires, counted from the first
	first int8  // its first proposal
	token int8  // its last proposal, which is the token of its lease
	asked uint8 // how often it has asked a node once more, where the configuration limits that
	round uint8 // how many second rounds it has begun
	since int8  // without clocks: the largest token that was granted before the attempt began
}

type phase uint8

const (
	idle phase = iota
	acquiring
	agreeing
	live
	lapsed // past its deadline and still listening: with the defect LateReply only
	ended
)

func (a *attempt) word() uint64 {
	return uint64(a.phase) | uint64(a.left)<<8 | uint64(uint8(a.first))<<24 |
		uint64(uint8(a.token))<<32 | uint64(uint8(a.since))<<40 | uint64(a.asked)<<48 | uint64(a.round)<<56
}

func (c *cell) word() uint64 {
	w := uint64(c.queue) | uint64(c.reply)<<8
	if c.chosen {
		w |= 1 << 12
	}
	return w
}

// known returns what an attempt knows of a node, as a number.
func (c *cell) known() uint64 {
	w := uint64(c.sent) | uint64(c.proof)<<4 | uint64(c.moved)<<9
	if c.told {
		w |= 1 << 8
	}
	return w
}
