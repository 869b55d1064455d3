package elector

import (
	"context"
	"time"
)

// CampaignTracer is told of every campaign; see WithTracer. A value that also implements
// ChangeTracer is told of transitions too. Methods are called synchronously and must not block or
// panic. A panic ends the term and goes on in the goroutine of Run. The lease is released, or left
// to run out if lead runs under it.
type CampaignTracer interface {
	// TraceCampaignStart is called before the candidate waits for the lease. The acquisition uses
	// the context that it returns. The term's context carries the values of that context.
	TraceCampaignStart(ctx context.Context, data TraceCampaignStartData) context.Context
	// TraceCampaignEnd is called with the context that TraceCampaignStart returned.
	TraceCampaignEnd(ctx context.Context, data TraceCampaignEndData)
}

// TraceCampaignStartData describes a campaign.
type TraceCampaignStartData struct {
	Election string
	Identity string
}

// TraceCampaignEndData is how a campaign ended.
type TraceCampaignEndData struct {
	Election string
	Term     *Term // nil unless elected
	Err      error // nil if elected, else the end of Run's context or a closed Quorum
}

// ChangeTracer is told of every transition, before the readers of Changes are.
type ChangeTracer interface {
	TraceChange(ctx context.Context, data TraceChangeData)
}

// TraceChangeData describes a transition of this replica.
type TraceChangeData struct {
	Election string
	Change   Change
	Term     *Term
	Served   time.Duration // from the election to the end of the term; zero for Elected
}
