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
	ShortGate       Defect = "gate shorter than a lease"                  // a restarted node votes again before every lease that it may have forgotten is over
	GateWithoutSkew Defect = "gate without the clock skew"                // a restarted node votes again after the longest TTL
	GrantUnvouched  Defect = "a grant counts unvouched"                   // a grant counts from a process that is not vouched for
	RefillUnvouched Defect = "a refill counts unvouched"                  // a key counts that was put back by a process that is not vouched for
	ExtendUnvouched Defect = "an extension counts unvouched"              // an extension counts from a process that is not vouched for; the key that it finds may not have counted
	BeforeOnly      Defect = "generation compared before only"            // the generation of a connection is compared before the exchange, and not after it
	LateReply       Defect = "late reply revives"                         // an extension that is confirmed after the deadline revives the lease
	CountFromReply  Defect = "deadline counts from the reply"             // the deadline of a grant counts from the reply, not from the start of the round
	ProofFromAnswer Defect = "proof counts from the answer"               // an extension proves from its answer on, not from its sending
	ProofTooFew     Defect = "deadline is the proof of Q - 1"             // the deadline is the (Q-1)-th largest proof
	GoneIgnored     Defect = "withdrawal is ignored"                      // an answer that the node does not have the key does not end its earlier proof
	CountFromLast   Defect = "deadline counts from the last round"        // the deadline counts from the start of the round in which the attempt asked last
	UndoEarlier     Defect = "late grant of an earlier round is released" // a grant of an earlier round that is answered late is released, although the attempt has stayed
	NoDrift         Defect = "no allowance for drift"                     // the lease is relied on for the whole TTL
	NoCompare       Defect = "release does not compare"                   // a release deletes whatever key is there
	ExtendAny       Defect = "extension does not compare"                 // an extension takes the key whichever owner has it
	QuorumTooSmall  Defect = "quorum of N/2"                              // N/2 nodes are a quorum
	Overtaking      Defect = "release overtakes"                          // a release may overtake its acquisition
	RaiseFirst      Defect = "ZADD before SET"                            // a node raises the counter before it has the key
	NotStrict       Defect = "raise not strict"                           // a counter that has reached the proposal already counts as raised
	TokenOnOne      Defect = "token on one node is enough"                // a lease needs a quorum of grants, and one node that raised
	Mixed           Defect = "raised to different tokens"                 // a node that raised the first proposal counts for the second
	OwnRaises       Defect = "own text proves a raise"                    // a node that answers with the attempt's own text counts as raised
	RaiseUnvouched  Defect = "a raise counts unvouched"                   // a raise counts from a process that is not vouched for
	AgreeUnvouched  Defect = "a second round counts unvouched"            // so does a raise in a second round
	SecondProves    Defect = "second round proves from its own sending"   // the deadline counts from the second round
	ClocksIgnored   Defect = "the proposal ignores the clocks"            // a proposal is one more than the largest counter seen
	SeenIgnored     Defect = "the proposal ignores what was seen"         // a proposal is what the clocks say
	OneClock        Defect = "one clock alone"                            // the clock of one server is proposed, which may be wrong
	NotChecked      Defect = "the clocks are not asked at the grant"      // a token may be as old as its attempt
)
