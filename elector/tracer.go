package elector

import (
	"context"
	"time"
)

// CampaignTracer is told of every campaign. It is what WithTracer takes; a value that also
// implements ChangeTracer is told of transitions too. Methods are called synchronously and must not
// block or panic. A panic ends the term and goes on in the goroutine of Run. The lease is released,
// or left to run out if lead runs under it.
type CampaignTracer interface {
	// TraceCampaignStart is called before the candidate waits for the lease. The context it returns
	// reaches the acquisition, and its values the term's context.
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
	Err      error // why not: the end of Run's context, or a closed Quorum
}

// ChangeTracer is told of every transition, before subscribers of Changes are.
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
