package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	read = time.Date(2026, 11, 24, 3, 12, 40, 0, time.FixedZone("somewhere", 3600))
	tick = read.Add(-time.Minute)

	run  = admin.Run{Job: "report", Replica: "b", Tick: tick, Began: tick.Add(123456 * time.Microsecond), Attempt: 2, Why: "again", FencingToken: 9, LeaseLeft: 1500 * time.Microsecond}
	past = admin.PastRun{
		Job: "report", Replica: "a", Tick: tick.Add(-time.Hour), Began: tick.Add(-time.Hour), Took: 1234567 * time.Microsecond, Outcome: admin.OutcomeFailed, Error: "full", Attempt: 1,
		Attempts: []admin.Attempt{{Began: tick.Add(-time.Hour), Took: time.Second, Error: "full"}}, Why: "on_time", Report: "3 rows", FencingToken: 7, TraceID: "4bf9", Order: "o", Sources: 3,
	}
	paused = admin.Paused{Target: admin.AllJobs, Until: read.Add(time.Hour), Since: tick, By: "ann", Reason: "it moves", Nodes: 3}
	seen   = admin.Seen{Replica: "b", Node: "n2", Why: "noauth", Age: time.Second}
	status = admin.JobStatus{
		Name: "report", Schedule: "0 3 * * *", Zone: "Europe/Berlin", Program: "example.com/billing", Election: "poller", Delivery: "at_least_once", CatchUp: "one", Overlap: "skip",
		Window: time.Minute, Orders: true, Runbook: "https://x/y", Next: read.Add(time.Hour), Late: true, Running: &run, Last: &past, Paused: &paused, Succeeded: tick, Overdue: true, Backfill: &admin.Backfill{From: tick, To: read},
		Err: errors.New("admin: cannot tell"), Age: time.Second, Sources: 3,
	}
)

// contract is each document, full and of what is not known.
func contract() map[string]any {
	o := NewOverview(QuorumOf([]Node{NewNode(redlock.NodeStatus{Node: "n1", Votes: true, Reachable: true}, nil, read)}))
	return map[string]any{
		"job": NewJob(status, read), "job unknown": NewJob(admin.JobStatus{Name: "report"}, time.Time{}),
		"run unknown": NewRun(admin.Run{}), "past": NewPast(past), "past unknown": NewPast(admin.PastRun{}),
		"skip": NewSkip(admin.Skip{Job: "report", Reason: "paused", Tick: tick, Count: 3, Replica: "a", By: "ann", At: read, Sources: 2}), "skip unknown": NewSkip(admin.Skip{}),
		"pause unknown": NewPause(admin.Paused{}),
		"node": NewNode(redlock.NodeStatus{
			Node: "n1", Reachable: true, Role: "master", Version: "8.1.4", Uptime: time.Hour, Latency: 412 * time.Microsecond, QuarantinedUntil: read, Err: errors.New("redlock: quarantined"),
			Warnings: []error{errors.New("evicts")},
		}, []admin.Seen{seen}, read),
		"node unknown": NewNode(redlock.NodeStatus{Node: "n3"}, nil, read),
		"replica":      NewReplica(admin.Replica{ID: "i", Identity: "a", Host: "h", PID: 1, Program: "p", Version: "v", Began: tick, Leads: []string{"poller"}, Jobs: []string{"report"}, Running: []admin.Run{run}, Nodes: []admin.Seen{seen}, Cut: true, Age: time.Second, Sources: 3}, read),
		"election": NewElection(admin.Election{Name: "poller", Leader: &admin.Leader{Identity: "a", Payload: "x", Term: 5, Since: tick, LeaseLeft: time.Second}, Candidates: []string{"a", "b"},
			Terms: []admin.Term{{Number: 5, Identity: "a", Began: tick, Ended: read, How: "lost", Reason: "no_quorum", Gap: time.Second, Sources: 2}}}, read),
		"election unknown": NewElection(admin.Election{Name: "poller", Leader: &admin.Leader{LeaseLeft: redlock.NoExpiry}, Terms: []admin.Term{{}}, Err: errors.New("redlock: no quorum")}, read),
		"order":            NewOrder(admin.Order{ID: "o", Kind: admin.OrderRunNow, Target: "report", By: "ann", Why: "again", At: tick, Result: "done", Detail: "d", TakenBy: "a", Answered: read, Run: admin.RunID{Job: "report", FencingToken: 9}, Sources: 3}),
		"order unknown":    NewOrder(admin.Order{}),
		"overview":         o,
		"term change":      NewTermChange(admin.TermChange{Election: "poller", Term: 5, Identity: "a", Event: "lost"}),
	}
}

// The JSON of both the command and the page is what the golden file has. UPDATE=1 writes it.
func TestContract(t *testing.T) {
	text, err := JSON(contract())
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, json.Indent(&b, text, "", "  "))
	b.WriteByte('\n')
	golden := filepath.Join("testdata", "contract.json")
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

// What is not known is null also where it is a text, and texts stay what they are.
func TestNoTextIsEmpty(t *testing.T) {
	text, err := JSON(contract())
	require.NoError(t, err)
	require.NotContains(t, string(text), `""`)
	type document struct {
		Text  string
		Texts []string
		Named map[string]string
	}
	d := document{"", []string{"", `:""`, `":`, `\:""`}, map[string]string{"a:": "", "": `:""`, `b:"`: ""}}
	text, err = JSON(d)
	require.NoError(t, err)
	require.Contains(t, string(text), `"Text":null`)
	require.Contains(t, string(text), `"a:":null`)
	var is document
	require.NoError(t, json.Unmarshal(text, &is))
	require.Equal(t, d, is)
}

// A job is in each state that is right of it, and its state is the worst, but for a pause: somebody
// knows. What cannot be read hides nothing that is known.
func TestStateIsTheWorst(t *testing.T) {
	unread, failed := errors.New("no quorum"), past
	ended := past
	ended.Outcome, ended.FencingToken = admin.OutcomeOK, run.FencingToken
	for _, of := range []struct {
		job  admin.JobStatus
		want []string
	}{
		{admin.JobStatus{}, []string{OK}},
		{admin.JobStatus{Err: unread}, []string{Unknown}},
		{admin.JobStatus{Late: true, Err: unread}, []string{Late, Unknown}},
		{admin.JobStatus{Paused: &paused, Err: unread}, []string{Paused, Unknown}},
		{admin.JobStatus{Running: &run, Paused: &paused}, []string{Paused, Running}},
		{admin.JobStatus{Last: &failed, Running: &run, Late: true}, []string{Failing, Late, Running}},
		{admin.JobStatus{Overdue: true}, []string{Failing}},
		{admin.JobStatus{Running: &run, Last: &ended}, []string{OK}}, // the lease stays for the minimum hold
		{status, []string{Paused, Failing, Late, Running, Unknown}},
	} {
		j := NewJob(of.job, read)
		var in []string
		for _, state := range States {
			if j.Is(state) {
				in = append(in, state)
			}
		}
		require.ElementsMatch(t, of.want, in)
		require.Equal(t, of.want[0], j.State)
	}
	var c Counts
	c.Add(NewJob(status, read))
	c.Add(NewJob(admin.JobStatus{}, read))
	require.Equal(t, Counts{Total: 2, Failing: 1, Late: 1, Running: 1, Paused: 1, Unknown: 1, OK: 1}, c)
	require.False(t, NewJob(status, read).Is("nonsense"))
}

// A run that was cut short failed, and one that an operator ended did not.
func TestFailed(t *testing.T) {
	for outcome, failed := range map[admin.Outcome]bool{
		admin.OutcomeOK: false, admin.OutcomeCancelled: false, admin.OutcomeFailed: true, admin.OutcomePanicked: true, admin.OutcomeLost: true, admin.OutcomeNotBegun: true, admin.OutcomeCutShort: true,
	} {
		require.Equal(t, failed, new(NewPast(admin.PastRun{Outcome: outcome})).Failed(), outcome)
	}
}

// A node that refuses this user says nothing of the cluster: what replicas say stands in its place.
func TestQuorumOfWhoMayNotAsk(t *testing.T) {
	node := func(votes bool, err error, seen ...bool) Node {
		var by []admin.Seen
		for _, votes := range seen {
			by = append(by, admin.Seen{Votes: votes})
		}
		return NewNode(redlock.NodeStatus{Node: "n", Votes: votes, Reachable: true, Err: err}, by, read)
	}
	refused := error(&redlock.NodeError{Node: "n", Op: "examine", Err: &redlock.ConditionError{Condition: redlock.ConditionNoAuth}})
	require.True(t, Refused(refused))
	spare := func(n int) *int { return &n }
	other := NewNode(redlock.NodeStatus{Node: "of another"}, []admin.Seen{{Votes: true}}, read)
	for _, of := range []struct {
		nodes []Node
		want  Quorum
	}{
		{nil, Quorum{Need: 1, Spare: spare(-1)}},
		{[]Node{node(true, nil), node(true, nil), node(false, errors.New("down")), other}, Quorum{Total: 3, Votes: 2, Need: 2, Spare: spare(0)}},
		{[]Node{node(false, refused, true, false), node(false, refused, false), node(false, refused)}, Quorum{Total: 3, Need: 2, Hidden: 3, Told: 1, Denied: 1}},
		{[]Node{node(true, nil), node(true, nil), node(false, refused)}, Quorum{Total: 3, Votes: 2, Need: 2, Spare: spare(0), Hidden: 1}},
	} {
		require.Equal(t, of.want, QuorumOf(of.nodes))
	}
}

// An overview has each job where it belongs, the next ticks in their order, and no more than it
// may.
func TestOverviewListsJobs(t *testing.T) {
	o := NewOverview(Quorum{})
	for i := range 15 {
		o.Add(NewJob(admin.JobStatus{Name: fmt.Sprint(i), Next: read.Add(time.Duration(14-i%5) * time.Minute), Overdue: true}, read), 3)
	}
	o.Add(NewJob(admin.JobStatus{Name: "late", Next: tick, Late: true}, read), 3)
	names := func(jobs []*Job) (all string) {
		for _, j := range jobs {
			all += j.Name + " "
		}
		return strings.TrimSpace(all)
	}
	require.Equal(t, "0 1 2", names(o.Failing))
	require.Equal(t, "late", names(o.Late))
	require.Equal(t, "4 9 14 3 8 13 2 7 12 1", names(o.Next))
}

// Times are told in UTC with three digits, and what no calendar has is not known.
func TestValues(t *testing.T) {
	for want, at := range map[string]time.Time{`"2026-11-24T02:12:40.000Z"`: read, `"2026-11-24T02:12:40.009Z"`: read.Add(9999 * time.Microsecond), "null": time.UnixMilli(1 << 62)} {
		text, err := json.Marshal(At(at))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		var is Time
		require.NoError(t, json.Unmarshal(text, &is))
		require.True(t, is.Equal(At(at).Time))
	}
	for want, s := range map[string]Span{"1.5": Span(1500 * time.Microsecond), "null": 0, "60000": Span(time.Minute)} {
		text, err := json.Marshal(s)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		var is Span
		require.NoError(t, json.Unmarshal(text, &is))
		require.Equal(t, s, is)
	}
	require.Empty(t, Error(nil))
	require.Equal(t, "no quorum\uFFFD", Error(errors.New("web: admin: redlock: no quorum\xff")))
	require.Len(t, []rune(Error(errors.New(strings.Repeat("ü", 1000)))), longestError)
}

// Times are said in two units at most, and shorter ones as exactly as people read them.
func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 59900 * time.Millisecond: "59 s", time.Minute: "1 min 0 s", 10 * time.Minute: "10 min", 134 * time.Minute: "2 h 14 min", 51 * time.Hour: "2 d 3 h",
		math.MaxInt64: "106751 d 23 h",
	} {
		require.Equal(t, want, Rough(d), "%v", d)
	}
	for d, want := range map[time.Duration]string{
		-1: "0 s", 0: "0 ms", 40 * time.Microsecond: "0 ms", 1540 * time.Microsecond: "1.5 ms", 412 * time.Millisecond: "412 ms", 1290 * time.Millisecond: "1.2 s", 59990 * time.Millisecond: "59.9 s", 3 * time.Minute: "3 min 0 s",
	} {
		require.Equal(t, want, Span(d).String(), "%v", d)
	}
}

// The nodes are said in one sentence.
func TestQuorumSentence(t *testing.T) {
	spare := func(n int) *int { return &n }
	for want, q := range map[string]Quorum{
		"3 of 3 nodes vote; 1 more may fail.":                                       {Total: 3, Votes: 3, Need: 2, Spare: spare(1)},
		"4 of 5 nodes vote; 1 more may fail.":                                       {Total: 5, Votes: 4, Need: 3, Spare: spare(1)},
		"2 of 3 nodes vote; none more may fail.":                                    {Total: 3, Votes: 2, Need: 2, Spare: spare(0)},
		"1 of 1 nodes vote; it may not fail.":                                       {Total: 1, Votes: 1, Need: 1, Spare: spare(0)},
		"1 of 3 nodes vote, and 2 are needed: nothing is granted.":                  {Total: 3, Votes: 1, Need: 2, Spare: spare(-1)},
		"2 of 5 nodes vote at most, and 3 are needed: nothing is granted.":          {Total: 5, Need: 3, Spare: spare(-3), Hidden: 2, Told: 2},
		"1 of 3 nodes vote, as replicas say, and 2 are needed: nothing is granted.": {Total: 3, Votes: 1, Need: 2, Hidden: 2, Denied: 2},
	} {
		require.Equal(t, want, q.Sentence())
	}
}

// Since when nothing is granted is since the last of so many nodes went that too few were left. The
// nodes that went later change nothing, and what replicas saw before this process counts.
func TestLost(t *testing.T) {
	at := func(minute int) time.Time { return read.Add(time.Duration(minute) * time.Minute) }
	yes, no := true, false
	node := func(name string, votes *bool, seen ...Seen) Node {
		return Node{Node: name, ThisProcess: true, Votes: votes, SeenBy: seen}
	}
	nodes := Nodes{Turned: map[string]time.Time{"a": at(5), "b": at(9), "c": at(1), "d": at(0)}, All: []Node{
		node("a", &no), node("b", &no, Seen{Replica: "x", Since: At(at(3))}), node("c", &no), node("d", &yes), node("e", &yes),
		{Node: "other", SeenBy: []Seen{{Replica: "x", Since: At(at(0)), Said: At(at(9))}}},
	}}
	require.True(t, nodes.Stalled())
	require.Equal(t, At(at(5)), nodes.Quorum().Since, "b and c might go")
	nodes.All[4].Votes, nodes.Turned["e"] = &no, at(7)
	require.Equal(t, At(at(5)), nodes.Quorum().Since)
	delete(nodes.Turned, "c")
	require.Equal(t, At(at(7)), nodes.Quorum().Since, "nobody knows when c went; e went last in any case")
	delete(nodes.Turned, "a")
	delete(nodes.Turned, "e")
	require.True(t, nodes.Quorum().Since.IsZero(), "not known")
	nodes.All[0].Votes, nodes.All[2].Votes, nodes.All[4].Votes = &yes, &yes, &yes
	require.True(t, nodes.Quorum().Since.IsZero(), "it is not lost")
	require.False(t, nodes.Stalled())
	require.False(t, Nodes{}.Stalled(), "nothing is known")

	gone := func(replica string, minute int, was ...Turn) Seen {
		return Seen{Replica: replica, Since: At(at(minute)), Was: was}
	}
	voted := Turn{Votes: true, Since: At(at(-60))}
	seen := func(turned time.Time, by ...Seen) Time {
		return Nodes{Turned: map[string]time.Time{"a": turned}, All: []Node{node("a", &no, by...)}}.Quorum().Since
	}
	require.Equal(t, At(at(6)), seen(at(6), gone("cut off", -30, voted), gone("x", 6, voted)), "it voted for x until then")
	require.Equal(t, At(at(2)), seen(at(6), gone("x", 4, Turn{Why: "timeout", Since: At(at(2))}, voted)), "its quarantine is the rest of the same")
	require.Equal(t, At(at(2)), seen(at(6), gone("x", 2), gone("y", 4)), "neither saw it vote")
	require.Equal(t, At(at(6)), seen(at(6), Seen{Replica: "x", Votes: true, Since: At(at(1))}))

	nodes = Nodes{Turned: map[string]time.Time{"a": at(1), "b": at(1)}, All: []Node{
		node("a", nil, Seen{Replica: "x", Votes: true, Said: At(at(9))}, Seen{Replica: "y", Since: At(at(1)), Said: At(at(9))}), node("b", nil, Seen{Replica: "x", Since: At(at(2)), Said: At(at(9))}, Seen{Replica: "old", Votes: true, Said: At(at(0))}),
		node("c", &no, gone("x", 3)), node("d", &no, gone("x", 4)), node("e", &yes),
	}}
	require.Equal(t, At(at(4)), nodes.Quorum().Since, "a refuses this user, and votes for x")
	nodes.All[0].SeenBy, nodes.All[1].SeenBy = nil, nil
	nodes.All[4].Votes = &no
	require.True(t, nodes.Quorum().Since.IsZero(), "only two are known")
}

// The command's line of a problem.
func TestLineOfATrouble(t *testing.T) {
	require.Equal(t, "a, b: silent: timed out. See whether it is up.", Trouble{Word: "silent", Nodes: []string{"a", "b"}, Why: "timed out", Hint: "See whether it is up."}.Line())
	require.Equal(t, "a: warning: a minute", Trouble{Word: "warning", Nodes: []string{"a"}, Why: "a minute"}.Line())
}
