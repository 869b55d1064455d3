package model

// Defect is a deliberate mistake in a protocol, by its name.
type Defect string

// Sound is the protocol without a defect.
const Sound Defect = ""

// defects are all defects of a model.
type defects []Defect

func (ds *defects) add(d Defect) Defect {
	*ds = append(*ds, d)
	return d
}

// The defects of the model of leases.
const (
	NoGate          Defect = "no gate"
	ShortGate       Defect = "gate shorter than a lease"                    // a restarted node votes again before every lease that it may have forgotten is over
	GateWithoutSkew Defect = "gate without the clock skew"                  // a restarted node votes again after the longest TTL
	GrantUnvouched  Defect = "a grant counts unvouched"                     // a grant counts from a process that is not vouched for
	RefillUnvouched Defect = "a refill counts unvouched"                    // a key counts that was put back by a process that is not vouched for
	ExtendUnvouched Defect = "an extension counts unvouched"                // an extension counts from a process that is not vouched for; the key that it finds may not have counted
	BeforeOnly      Defect = "generation compared before only"              // the generation of a connection is compared before the exchange, and not after it
	VouchLate       Defect = "vouched after the sending"                    // a command sent before the process was vouched for counts if it is answered after that
	NoAgreement     Defect = "no agreement on the token"                    // the largest counter is taken as the token, even if only one node has it
	AgreeLoose      Defect = "agreement looks at neither owner nor counter" // a node agrees to a token whichever owner has the key, even if its counter has reached the token
	NoHint          Defect = "no hint"                                      // a grant counts up by one, nothing else
	HintTooLow      Defect = "hint not held from below"                     // a token need not be near the median of the servers' clocks
	HintTooHigh     Defect = "hint not held from above"                     // a hint may be ahead of the server's clock by more than the allowance
	FastClockLeads  Defect = "a fast clock leads"                           // a hint is held to the allowance, but need not be near the median
	LateReply       Defect = "late reply revives"                           // an extension that is confirmed after the deadline revives the lease
	CountFromReply  Defect = "deadline counts from the reply"               // the deadline of a grant counts from the reply, not from the start of the round
	ProofFromAnswer Defect = "proof counts from the answer"                 // an extension proves from its answer on, not from its sending
	ProofTooFew     Defect = "deadline is the proof of Q - 1"               // the deadline is the (Q-1)-th largest proof
	GoneIgnored     Defect = "withdrawal is ignored"                        // an answer that the node does not have the key does not end its earlier proof
	CountFromLast   Defect = "deadline counts from the last round"          // the deadline counts from the start of the round in which the attempt asked last
	UndoEarlier     Defect = "late grant of an earlier round is released"   // a grant of an earlier round that is answered late is released, although the attempt has stayed
	NoDrift         Defect = "no allowance for drift"                       // the lease is relied on for the whole TTL
	NoCompare       Defect = "release does not compare"                     // a release deletes whatever key is there
	ExtendAny       Defect = "extension does not compare"                   // an extension takes the key whichever owner has it
	QuorumTooSmall  Defect = "quorum of N/2"                                // N/2 nodes are a quorum
	Overtaking      Defect = "release overtakes"                            // a release may overtake its acquisition
	NotStrict       Defect = "agreement is not strict"                      // a node agrees to a token that its counter has reached already
	AgreeAny        Defect = "agreement does not look at the owner"         // a node agrees to a token whoever has the key
	AgreeUnvouched  Defect = "agreement counts unvouched"                   // an agreement counts from a process that is not vouched for
	AgreeKeyOnly    Defect = "agreement without the counter"                // agreement raises the token in the key, and not the counter
)
