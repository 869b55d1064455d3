package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A vote that nobody won must not be taken for a holder: who is told of one drops what it wanted to
// do.
func TestASplitVoteIsNotHeld(t *testing.T) {
	err := error(&SplitError{Key: "key", Rounds: 6, Rival: Holder{Identity: "b", Nodes: 1}})
	wrapped := fmt.Errorf("job: %w", err)
	require.ErrorIs(t, wrapped, ErrSplit)
	require.NotErrorIs(t, wrapped, ErrHeld)
	require.NotErrorIs(t, wrapped, ErrNoQuorum)
	require.Equal(t, "split", ErrorType(wrapped))
	var held *HeldError
	require.False(t, errors.As(wrapped, &held))
	require.EqualError(t, err, `redlock: split vote on "key": nobody got it in 6 round(s), the last rival was b on 1 node(s): try again`)
}

// ownerAt is an owner value whose random part is one character all along.
func ownerAt(identity, c string) string {
	return identity + "/" + strings.Repeat(c, 22)
}

func TestRanking(t *testing.T) {
	member := wire.NewMember(1780000000000000, wire.NewProcess(), "z")
	want := []claim{
		{member, 1},
		{ownerAt("z", "x"), 3},
		{ownerAt("z", "A"), 2},
		{ownerAt("a", "B") + "?" + strings.Repeat("z", 30), 2}, // whatever the identity and the payload are
		{ownerAt("z", "a"), 2},
		{ownerAt("a", "0"), 1},
		{"something else", 1},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, claim.compare)
	require.Equal(t, want, got)
	for _, c := range want {
		require.Zero(t, c.compare(c))
	}
}

// voted is a round as a row: m is a grant, x a failure, ? a node that is silent, other letters are
// rivals.
func voted(row string) vote.Outcome {
	o := vote.Outcome{Tally: vote.Tally{Expired: true}}
	for _, c := range row {
		switch c {
		case 'm':
			o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.OK}})
			o.Agreed++
		case 'x':
			o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: errors.New("refused")})
		case '?':
			o.Replies = append(o.Replies, vote.Reply{})
		default:
			o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.Refused}.With(wire.More{Owner: ownerAt("other", string(c))})})
		}
	}
	return o
}

// One of the rivals stays, and each of them knows which.
func TestTheFirstStays(t *testing.T) {
	for rounds, stays := range map[string]bool{ // as the one in the middle of the order has seen them
		"mxa": false, "mxz": true, "maabz": false, "mmzaa": false, "mmzzz": false,
		"mma?z":       true,                             // more votes
		"x?z":         false,                            // it has nothing to keep
		"mmaaz mmaab": false, "mmaaz mmaab mmaaz": true, // a does not go away, and z is behind
		"maz?x maz?x may?x": true, "maz?x maz?x mab?x": false, // but b is in the way
		"mma mma mma": true, "mxa mxa mxa": false, // there is nobody else for whom to stay
	} {
		c := contest{}
		var o vote.Outcome
		for _, row := range strings.Fields(rounds) {
			o = voted(row)
			c.note(o, 0)
		}
		require.Equal(t, stays, c.leads(ownerAt("me", "m"), o), "%q", rounds)
	}
}

// Each rival ranks itself too, so two that see the same do not both stay.
func TestRivalsRankAlike(t *testing.T) {
	for _, row := range []string{"aabbx", "abx", "aabbc", "abcxx", "aabb", "abbcc"} {
		stay := 0
		for _, me := range "abc" {
			if !strings.ContainsRune(row, me) {
				continue
			}
			o := voted(strings.ReplaceAll(row, string(me), "m"))
			c := contest{}
			c.note(o, 0)
			if c.leads(ownerAt("other", string(me)), o) {
				stay++
			}
		}
		require.Equal(t, 1, stay, row)
	}
}

// A rival that may have a quorum, with the nodes that did not answer, and does not go away is a
// holder.
func TestARivalThatStandsIsAHolder(t *testing.T) {
	for row, of := range map[string]string{"max": "a", "ma?": "a", "mabxx": "a", "mabbx": "b", "mmabb": "", "mmabx": ""} { // nobody can have three
		o := voted(row)
		silent := vote.Count(o.Replies, wire.Failed) + vote.Count(o.Replies, wire.Pending)
		c := contest{}
		for round := 1; round <= holderAfter; round++ {
			c.note(o, 0)
			holder, ok := c.stander(o, silent, len(row)/2+1)
			require.Equal(t, of != "" && round == holderAfter, ok, "%s after %d rounds", row, round)
			require.True(t, !ok || holder.owner == ownerAt("other", of), row)
		}
		c.note(voted("mmmmm"[:len(row)]), 0)
		require.Empty(t, c.standing, "it is counted on end")
	}
}

// What a round took is what its answers took. A node that times out says nothing of the way to
// others.
func TestPausesFollowTheRoundTrip(t *testing.T) {
	const began, trip = clock.Instant(time.Hour), 20 * time.Millisecond
	o := voted("mza?x")
	for i, after := range []time.Duration{-time.Second, trip, trip / 2, 0, 0} { // the first is of an earlier round
		if after != 0 {
			o.Replies[i].At = began.Add(after)
		}
	}
	o.Replies[4].Err = node.ErrTimeout
	var c contest
	c.note(o, began)
	require.Equal(t, trip, c.trip)
	require.Equal(t, []bool{false, false, false, true, true}, c.silent)
	var stays, pause []time.Duration
	for i := range maxRounds {
		stays = append(stays, c.beforeStaying(i+1))
		p := c.beforeReturning()
		most := min(2*trip<<i, 2*maxBackoff*trip)
		require.LessOrEqual(t, p, most)
		require.GreaterOrEqual(t, p, most/2)
		pause = append(pause, p)
	}
	require.Equal(t, []time.Duration{trip / 4, trip / 2, trip, 2 * trip, 4 * trip, 8 * trip, 8 * trip, 8 * trip}, stays)
	require.NotEqual(t, pause[6], pause[7], "pauses are random")

	c = contest{}
	c.note(voted("maz"), began)
	require.Equal(t, minTrip, c.trip)
}

// A node that was silent in the round before is not waited for; what it answers in time counts.
func TestSilentNodesAreNotWaitedForAgain(t *testing.T) {
	q := &Quorum{need: 3}
	c := contest{}
	c.note(voted("mmab?"), 0)
	certain := func(row string) bool {
		o := voted(row)
		return q.acquireCertain(o.Replies, &c)
	}
	require.False(t, certain("mm?b?"))
	require.True(t, certain("mmab?"))
	require.True(t, certain("mm?bm"))
	c.note(voted("mmabm"), 0)
	require.False(t, certain("mmab?"))
}
