package tenureotel

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// The attributes that are set in more than one place; the others have their names where they are
// set. OpenTelemetry's semantic conventions define error.type, server.address, server.port,
// db.system.name and db.operation.name. The others are this package's own.
const (
	keyOutcome       = attribute.Key("tenure.outcome")
	keyReason        = attribute.Key("tenure.reason")
	keyTo            = attribute.Key("tenure.to")
	keyOperation     = attribute.Key("tenure.operation")
	keyElection      = attribute.Key("tenure.election.name")
	keyErrorType     = attribute.Key("error.type")
	keyServerAddress = attribute.Key("server.address")

	// Of spans only.
	keyLeaseKey      = attribute.Key("tenure.lease.key")
	keyLeaseTTL      = attribute.Key("tenure.lease.ttl")
	keyLeaseNodes    = attribute.Key("tenure.lease.nodes")
	keyLeaseQuorum   = attribute.Key("tenure.lease.quorum")
	keyLeaseWait     = attribute.Key("tenure.lease.wait")
	keyLeaseAttempts = attribute.Key("tenure.lease.attempts")
	keyLeaseAttempt  = attribute.Key("tenure.lease.attempt")
	keyLeaseVotes    = attribute.Key("tenure.lease.votes")
	keyLeaseToken    = attribute.Key("tenure.lease.fencing_token")
	keyIdentity      = attribute.Key("tenure.election.identity")
	keyJobWhy        = attribute.Key("tenure.job.why")
)

// The values of tenure.outcome.
const (
	outcomeAcquired = "acquired"
	outcomeOK       = "ok"
	outcomeHeld     = "held"
	outcomeDone     = "done"
	outcomeCanceled = "canceled"
	outcomeFailed   = "failed"
	outcomeExtended = "extended"
	outcomeReleased = "released"
	outcomeLost     = "lost"
	outcomeElected  = "elected"
	outcomeWaiting  = "waiting"
	outcomeSuccess  = "success"
	outcomeError    = "error"
	outcomePanic    = "panic"
	outcomeStopped  = "stopped"
	outcomeRefused  = "refused"
	outcomeNobody   = "nobody"
	outcomeUnknown  = "unknown"
)

// text returns s as valid UTF-8. It is for strings from outside: names, identities, texts of
// errors. A single invalid value makes Prometheus' exporter fail a whole scrape, and OTLP's a whole
// batch.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// clean returns an attribute whose strings are valid UTF-8.
func clean(a attribute.KeyValue) attribute.KeyValue {
	switch a.Value.Type() {
	case attribute.STRING:
		return a.Key.String(text(a.Value.AsString()))
	case attribute.STRINGSLICE:
		values := a.Value.AsStringSlice()
		for i, v := range values {
			values[i] = text(v)
		}
		return a.Key.StringSlice(values)
	default:
		return a
	}
}

// endWith sets the outcome of a span, and its error if err is not nil.
func endWith(span trace.Span, outcome, kind string, err error) {
	span.SetAttributes(keyOutcome.String(outcome))
	if err != nil {
		span.SetAttributes(keyErrorType.String(kind))
		fail(span, err)
	}
}

// fail sets the status of a span to error, with the text of err.
func fail(span trace.Span, err error) { span.SetStatus(codes.Error, text(fmt.Sprint(err))) }

// ask calls a method of an error that a task returned. If the method panics, as that of a nil
// pointer may, ask returns the zero value. Package fmt recovers from such panics too.
func ask[T any](question func() T) (answer T) {
	defer func() { _ = recover() }()
	return question()
}

// server splits host:port into attributes. A name of another form is an address without a port.
func server(node string) []attribute.KeyValue {
	host, text, err := net.SplitHostPort(node)
	port, none := strconv.Atoi(text)
	if err != nil || none != nil {
		return []attribute.KeyValue{keyServerAddress.String(node)}
	}
	return []attribute.KeyValue{keyServerAddress.String(host), attribute.Int("server.port", port)}
}
