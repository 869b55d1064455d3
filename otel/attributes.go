package tenureotel

import (
	"net"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
)

// The attributes. error.type, server.address, server.port and db.system.name are OpenTelemetry's
// semantic conventions; for the others there are none.
const (
	keyLeaseName     = attribute.Key("lease.name")
	keyOutcome       = attribute.Key("outcome")
	keyReason        = attribute.Key("reason")
	keyTo            = attribute.Key("to")
	keyOperation     = attribute.Key("operation")
	keyElection      = attribute.Key("election.name")
	keyJob           = attribute.Key("job.name")
	keyErrorType     = attribute.Key("error.type")
	keyServerAddress = attribute.Key("server.address")
	keyServerPort    = attribute.Key("server.port")
	keySystem        = attribute.Key("db.system.name")

	// Of spans only.
	keyLeaseKey      = attribute.Key("lease.key")
	keyLeaseTTL      = attribute.Key("lease.ttl")
	keyLeaseNodes    = attribute.Key("lease.nodes")
	keyLeaseQuorum   = attribute.Key("lease.quorum")
	keyLeaseWait     = attribute.Key("lease.wait")
	keyLeaseAttempts = attribute.Key("lease.attempts")
	keyLeaseVotes    = attribute.Key("lease.votes")
	keyLeaseValidity = attribute.Key("lease.validity")
	keyLeaseToken    = attribute.Key("lease.fencing_token")
	keyLeaseHolder   = attribute.Key("lease.holder")
	keyLeaseHeld     = attribute.Key("lease.held")
	keyLeaseMargin   = attribute.Key("lease.margin")
	keyLeaseRefilled = attribute.Key("lease.refilled")
	keyIdentity      = attribute.Key("election.identity")
	keyTerm          = attribute.Key("election.term")
	keyJobTick       = attribute.Key("job.tick")
	keyJobAttempt    = attribute.Key("job.attempt")
	keyJobCatchUp    = attribute.Key("job.catch_up")
	keyJobDelay      = attribute.Key("job.delay")
)

// The values of outcome.
const (
	outcomeAcquired = "acquired"
	outcomeHeld     = "held"
	outcomeDone     = "done"
	outcomeCanceled = "canceled"
	outcomeFailed   = "failed"
	outcomeExtended = "extended"
	outcomeReleased = "released"
	outcomeLost     = "lost"
	outcomeElected  = "elected"
	outcomeSuccess  = "success"
	outcomeError    = "error"
	outcomePanic    = "panic"
)

// server splits host:port. A name that is none is an address without a port.
func server(node string) []attribute.KeyValue {
	host, text, err := net.SplitHostPort(node)
	if err != nil {
		return []attribute.KeyValue{keyServerAddress.String(node)}
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return []attribute.KeyValue{keyServerAddress.String(node)}
	}
	return []attribute.KeyValue{keyServerAddress.String(host), keyServerPort.Int(port)}
}
