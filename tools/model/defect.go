package model

// Defect is a deliberate mistake in the protocol.
type Defect uint8

// The defects.
const (
	Sound Defect = iota
	NoGate
	ShortGate       // a restarted node votes again before every lease that it may have forgotten is over
	GateWithoutSkew // a restarted node votes again after the longest TTL
	GrantUnvouched  // a grant counts from a process that is not vouched for
	RefillUnvouched // so does a key that was put back
	ExtendUnvouched // so does an extension, which may find what did not count when it was put there
	BeforeOnly      // the generation of a connection is compared before the exchange, and not after it
	VouchLate       // what was sent before the process was vouched for counts if it is when it answers
	NoAgreement     // the largest counter is taken as the token, whoever has it
	AgreeLoose      // a node agrees to a token whoever has the key, also if its counter has reached the token
	NoHint          // a grant counts up by one, nothing else
	HintTooLow      // a token need not be near the median of the servers' clocks
	HintTooHigh     // the hint is not held to what is at most the allowance ahead of the server's clock
	FastClockLeads  // it is held to that, but need not be near the median
	LateReply       // an extension that is confirmed after the deadline revives the lease
	CountFromReply  // the deadline of a grant counts from the reply, not from the start of the round
	ProofFromAnswer // an extension proves from its answer on, not from its sending
	ProofTooFew     // the deadline is the (Q-1)-th largest proof
	GoneIgnored     // a node that answers that it does not have the key is taken at its word of before
	CountFromLast   // the deadline counts from the start of the round in which the attempt asked last
	UndoEarlier     // a grant of an earlier round that is answered late is released, although the attempt has stayed
	NoDrift         // the lease is relied on for the whole TTL
	NoCompare       // a release deletes whatever key is there
	ExtendAny       // an extension takes the key whoever has it
	QuorumTooSmall  // N/2 nodes are a quorum
	Overtaking      // a release may overtake its acquisition
	NotStrict       // a node agrees to a token that its counter has reached already
	AgreeAny        // a node agrees to a token whoever has the key
	AgreeUnvouched  // an agreement counts from a process that is not vouched for
	AgreeKeyOnly    // agreement raises the token in the key, and not the counter
)

var defectNames = [...]string{
	Sound:           "none",
	NoGate:          "no gate",
	ShortGate:       "gate shorter than a lease",
	GateWithoutSkew: "gate without the clock skew",
	GrantUnvouched:  "a grant counts unvouched",
	RefillUnvouched: "a refill counts unvouched",
	ExtendUnvouched: "an extension counts unvouched",
	BeforeOnly:      "generation compared before only",
	VouchLate:       "vouched after the sending",
	NoAgreement:     "no agreement on the token",
	AgreeLoose:      "agreement looks at neither owner nor counter",
	NoHint:          "no hint",
	HintTooLow:      "hint not held from below",
	HintTooHigh:     "hint not held from above",
	FastClockLeads:  "a fast clock leads",
	LateReply:       "late reply revives",
	CountFromReply:  "deadline counts from the reply",
	ProofFromAnswer: "proof counts from the answer",
	ProofTooFew:     "deadline is the proof of Q - 1",
	GoneIgnored:     "withdrawal is ignored",
	CountFromLast:   "deadline counts from the last round",
	UndoEarlier:     "late grant of an earlier round is released",
	NoDrift:         "no allowance for drift",
	NoCompare:       "release does not compare",
	ExtendAny:       "extension does not compare",
	QuorumTooSmall:  "quorum of N/2",
	Overtaking:      "release overtakes",
	NotStrict:       "agreement is not strict",
	AgreeAny:        "agreement does not look at the owner",
	AgreeUnvouched:  "agreement counts unvouched",
	AgreeKeyOnly:    "agreement without the counter",
}

func (d Defect) String() string { return defectNames[d] }
