// Package doctor examines the nodes of a fleet and the way to them. It reports what is wrong and
// what to do about it.
//
// It asks each node directly, over connections of its own. Then it has a redlock.Quorum look at all
// nodes, as a replica would. Most conditions and their advice come from redlock. This package adds
// checks that one Quorum does not make: each right of the user, persistence, what other processes
// of the prefix say of themselves, other prefixes, and why a node does not answer.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/resp"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

// Config says which nodes to examine, and how.
type Config struct {
	URLs        []string
	Prefix      string
	ClockSkew   time.Duration // the skew that this process was given; replicas should have the same
	TTL         time.Duration // TTL of the Quorum that Open makes
	NodeTimeout time.Duration
	// WithTLS adds certificates to the options of a node whose URL is for TLS.
	WithTLS func(url string, o *valkey.ClientOption)
	// Open makes the Quorum of the URLs. The given options take precedence over its own.
	Open func(opts ...redlock.Option) (*redlock.Quorum, error)
}

// examination is the state of one call of Examine.
type examination struct {
	cfg     *Config
	servers []*server
	found   findings
	report  *Report
}

// settleWithin is how long the Quorum may take to look at the nodes: two node timeouts, and time
// for a busy machine.
const settleWithin = 3 * time.Second

// Examine examines the nodes and returns a report. If ctx ends early, the report has the findings
// so far. Examine itself writes nothing to the nodes, but its Quorum takes part in the prefix like
// any process that starts.
func Examine(ctx context.Context, cfg *Config) *Report {
	e := &examination{cfg: cfg, report: &Report{Prefix: cfg.Prefix, Nodes: []*Node{}}}
	e.servers = cfg.ask(func(s *server, client valkey.Client) { s.ask(ctx, client, cfg.Prefix) })
	e.list()
	e.processes()
	e.rights()
	e.state()
	e.loadings()
	e.clocks()
	q, err := cfg.Open(AskLimits(ctx, cfg)...)
	if err != nil {
		e.found.add(Finding{Severity: Fault, Code: "nodes", Seen: strings.TrimPrefix(err.Error(), "redlock: "), Advice: "correct the list of nodes"})
	} else {
		defer q.Close()
		e.quorum(ctx, q)
	}
	e.used()
	if e.report.Findings = e.found.sorted(); len(e.report.Findings) > 0 {
		e.report.Worst = e.report.Findings[0].Severity
	}
	e.report.Now = view.At(time.Now())
	return e.report
}

// ask connects to all nodes at once, and calls the function what with each connection. It leaves
// out a URL that it cannot parse: Open reports that URL, without its password.
func (c *Config) ask(what func(*server, valkey.Client)) (servers []*server) {
	var asked sync.WaitGroup
	for _, url := range c.URLs {
		option, err := c.option(url)
		if err != nil {
			continue
		}
		s := &server{addr: strings.Join(option.InitAddress, ","), option: option}
		servers = append(servers, s)
		asked.Go(func() {
			client, err := valkey.NewClient(option)
			if s.err = err; err == nil {
				defer client.Close()
				what(s, client)
			}
		})
	}
	asked.Wait()
	return servers
}

// AskLimits asks the nodes for the longest TTL and the largest clock skew of the processes of the
// prefix. It returns options with which a Quorum uses these limits from the start. Without them a
// Quorum learns the limits only when nodes begin to vote for it, which is too late for a Quorum
// that looks once. Nodes that do not answer are left out.
func AskLimits(ctx context.Context, cfg *Config) []redlock.Option {
	longest, largest := cfg.TTL, time.Duration(0)
	for _, s := range cfg.ask(func(s *server, client valkey.Client) { s.roster, _ = bridge.ReadRoster(ctx, client, cfg.Prefix) }) {
		ttl, skew := s.limits()
		longest, largest = max(longest, ttl), max(largest, skew)
	}
	return []redlock.Option{redlock.WithMaxTTL(longest), redlock.WithClockSkew(cmp.Or(largest, cfg.ClockSkew))}
}

// list examines the number of nodes.
func (e *examination) list() {
	switch n := len(e.cfg.URLs); {
	case n == 1:
		e.found.add(Finding{Severity: Warning, Code: "one_node", Seen: "there is one node: when it fails, no lease can be had", Advice: "use three or five, each on a host of its own"})
	case n%2 == 0:
		e.found.add(Finding{Severity: Note, Code: "even_number", Seen: fmt.Sprintf("%d nodes survive no more failures than %d", n, n-1), Advice: "use an odd number: three or five"})
	}
}

// option returns the client options with which to ask the node of a URL.
func (c *Config) option(url string) (valkey.ClientOption, error) {
	option, err := valkey.ParseURL(url)
	if err != nil {
		return option, err
	}
	c.WithTLS(url, &option)
	option.ForceSingleClient, option.DisableCache, option.DisableRetry = true, true, true
	option.ClientSetInfo = valkey.DisableClientSetInfo
	option.ConnWriteTimeout, option.Dialer.Timeout = c.NodeTimeout, c.NodeTimeout
	option.PipelineMultiplex = -1
	resp.GuardClient(&option)
	return option, nil
}

// processes checks whether several servers answer at one address.
func (e *examination) processes() {
	for _, s := range e.servers {
		if len(s.runIDs) > 1 {
			e.found.add(s.finding(Fault, string(redlock.ConditionSeveralServers), fmt.Sprintf("%d servers answer at this address by turns: two processes may count different ones as the same node", len(s.runIDs)),
				"give each server an address of its own in the list, without a balancer, a virtual IP or a Service over several pods in front"))
		}
	}
}

// state examines what each server says about its memory and clients, as far as a Quorum does not.
func (e *examination) state() {
	for _, s := range e.servers {
		limit, used := s.number("maxmemory"), s.number("used_memory")
		switch {
		case s.info == nil || limit == 0:
		case used >= limit:
			e.found.add(Finding{Severity: Fault, Code: string(redlock.ConditionOutOfMemory), Nodes: []string{s.addr},
				Seen: fmt.Sprintf("it is full: it uses all of its maxmemory of %d bytes, and refuses new leases", limit), Advice: "raise maxmemory, or remove data that is another program's"})
		case used > limit/10*9:
			e.found.add(Finding{Severity: Warning, Code: "memory_low", Nodes: []string{s.addr},
				Seen: fmt.Sprintf("it uses more than nine tenths of its maxmemory of %d bytes: full, it refuses new leases", limit), Advice: "raise maxmemory, or remove data that is another program's"})
		}
		if clients, most := s.number("connected_clients"), s.number("maxclients"); most > 0 && clients > most/10*9 {
			e.found.add(Finding{Severity: Warning, Code: "clients_many", Nodes: []string{s.addr},
				Seen: fmt.Sprintf("%d of at most %d clients are connected: when there are no more, processes that begin are refused", clients, most), Advice: "raise maxclients, or find out which processes have so many connections"})
		}
	}
}

// clocks compares the clock of each server with the median of all servers, and the median with this
// machine's clock. The Quorum warns of a server whose clock is wrong.
func (e *examination) clocks() {
	known := slices.DeleteFunc(slices.Clone(e.servers), func(s *server) bool { return s.at.IsZero() })
	if len(known) == 0 {
		return
	}
	slices.SortFunc(known, func(a, b *server) int { return int(a.ahead()/time.Microsecond - b.ahead()/time.Microsecond) })
	median := known[(len(known)-1)/2].ahead()
	for _, s := range e.servers {
		if !s.at.IsZero() {
			e.node(s.addr).ClockSkew = new(float64((s.ahead() - median).Microseconds()) / 1000)
		}
	}
	if off := median.Abs() - known[len(known)-1].trip; off > e.cfg.ClockSkew && len(known) > 1 {
		e.found.add(Finding{Severity: Note, Code: "clock_here",
			Seen: fmt.Sprintf("the servers' clocks differ from this machine's by %v", median.Round(time.Millisecond)), Advice: "set this machine's clock right: if it runs a replica, its ticks come at other times"})
	}
}

// used examines what the processes of the prefix say of themselves, and which other prefixes are in
// use.
func (e *examination) used() {
	ours, heard, unread := false, false, false
	var others []string
	for _, s := range e.servers {
		ours = ours || inUse(s.roster)
		if s.err == nil {
			votes := e.node(s.addr).Votes
			heard = heard || votes == nil || *votes // a full server, for example, cannot record its users
		}
		unread = unread || s.unread
		for _, o := range s.others {
			if !slices.Contains(others, o) {
				others = append(others, o)
			}
		}
		if _, skew := s.limits(); inUse(s.roster) && skew > 0 && skew != e.cfg.ClockSkew {
			e.found.add(Finding{Severity: Warning, Code: "clock_skew", Nodes: []string{s.addr},
				Seen:   fmt.Sprintf("processes of the prefix have a clock skew of %v, and this command was told %v: each process uses the largest of all", skew, e.cfg.ClockSkew),
				Advice: fmt.Sprintf("--clock-skew %v, or TENURE_CLOCK_SKEW; and the same WithClockSkew in all processes", skew)})
		}
	}
	switch {
	case unread: // this user may not read it
	case !ours && len(others) > 0:
		e.found.add(Finding{Severity: Warning, Code: "another_prefix",
			Seen: fmt.Sprintf("no process uses the prefix %q; in use are %s", e.cfg.Prefix, strings.Join(view.All(others, strconv.Quote), ", ")), Advice: "--prefix, or TENURE_PREFIX: that of the replicas (WithPrefix)"})
	case !ours && heard:
		e.found.add(Finding{Severity: Note, Code: "unused",
			Seen:   fmt.Sprintf("no process has used the prefix %q within %v", e.cfg.Prefix, usedWithin),
			Advice: "nothing, if no replica runs now; else they have another prefix, or database number. A user who may SCAN, such as the operator of docs/nodes.md, is told of other prefixes"})
	}
}

// node returns the report's entry of a node. It adds the entry if there is none.
func (e *examination) node(addr string) *Node {
	i := slices.IndexFunc(e.report.Nodes, func(n *Node) bool { return n.Node == addr })
	if i < 0 {
		i = len(e.report.Nodes)
		e.report.Nodes = append(e.report.Nodes, &Node{Node: addr})
	}
	return e.report.Nodes[i]
}

// told examines what replicas tell: how they see the nodes, and whether ticks or pauses are in use
// that should outlive the servers.
func (e *examination) told(ctx context.Context, c *admin.Client, statuses []redlock.NodeStatus) {
	for began := time.Now(); ; {
		replicas, err := c.Replicas(ctx)
		if err != nil {
			return // no node answers, which is a finding already
		}
		e.report.Replicas = len(replicas)
		waited := time.Since(began)
		differ, again := differing(replicas, statuses, waited-lookAgain)
		if len(again) == len(differ) || waited >= sayAgain || ctx.Err() != nil {
			for _, v := range again {
				e.found.add(Finding{Warning, "seen_differently", []string{v.Node}, fmt.Sprintf("it votes for this process, and the replica %q says of it: %s", v.Replica, v.Why),
					"see that replica's log, and the way from its host to the node"})
			}
			e.persistence(ctx, c)
			return
		}
		_ = clock.Sleep(ctx, time.Second)
	}
}

// sayAgain is the time within which a live replica tells again how it sees the nodes.
const sayAgain = bulletin.TellEvery * 3 / 2

// lookAgain is the time within which a replica looks again at a node that does not vote for it.
const lookAgain = 3 * time.Second

// differing returns what replicas say of nodes that vote for this process, and for them do not, or
// with a warning that this process has not. The second result has only the statements that are
// younger than age. An older statement may be from before the node voted, or from a replica that
// has ended.
func differing(replicas []admin.Replica, statuses []redlock.NodeStatus, age time.Duration) (all, young []admin.Seen) {
	for _, n := range admin.Seeing(statuses, replicas) {
		for _, seen := range n.SeenBy {
			same := seen.Votes && (seen.Why == "" || slices.ContainsFunc(n.Warnings, func(w error) bool { return redlock.ErrorType(w) == seen.Why }))
			if n.Votes && !same {
				all = append(all, seen)
			}
		}
	}
	return all, slices.DeleteFunc(slices.Clone(all), func(seen admin.Seen) bool { return seen.Age >= age })
}

// persistence checks whether the servers keep on disk the data that should outlive them: ticks that
// were run, and pauses.
func (e *examination) persistence(ctx context.Context, c *admin.Client) {
	var volatile []string
	uses := ""
	for _, s := range e.servers {
		if s.records {
			uses = "ticks or pauses are kept"
		}
		if s.info != nil && s.info["aof_enabled"] == "0" {
			volatile = append(volatile, s.addr)
		}
	}
	if len(volatile) < len(e.servers)/2+1 {
		return // a quorum keeps the data
	}
	if _, err := c.Paused(ctx, admin.AllJobs); err == nil {
		uses = "all jobs are paused"
	}
	for j, err := range c.Jobs(ctx) {
		if err != nil {
			break
		}
		uses = fmt.Sprintf("there are jobs, such as %q", j.Name)
		break
	}
	if uses == "" {
		return
	}
	e.found.add(Finding{Severity: Warning, Code: "not_persistent", Nodes: volatile,
		Seen:   uses + ", and a quorum of nodes keeps nothing on disk: if they lose their memory at once, ticks may be run again and pauses are forgotten",
		Advice: "set appendonly yes, and appendfsync everysec: docs/nodes.md; it makes no quarantine shorter"})
}
