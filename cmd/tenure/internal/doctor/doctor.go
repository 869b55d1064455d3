// Package doctor examines the nodes of a fleet and the way to them, and says what is wrong and what
// to do.
//
// It asks each node directly, over connections of its own, and then has a redlock.Quorum look at
// all of them, as a replica would. Most of what it knows is redlock's: conditions and their advice.
// What it adds is what one Quorum does not look at: the rights one by one, persistence, what other
// processes of the prefix say of themselves, other prefixes, and the way to a node that does not
// answer.
package doctor

import (
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
	"github.com/tenure-dev/tenure/internal/resp"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

// Config is what to examine.
type Config struct {
	URLs        []string
	Prefix      string
	ClockSkew   time.Duration // that the process was told, and replicas should have
	TTL         time.Duration // of the Quorum that Open makes
	NodeTimeout time.Duration
	// WithTLS adds certificates to the options of a node whose URL is for TLS.
	WithTLS func(url string, o *valkey.ClientOption)
	// Open makes the Quorum of the URLs. Options that are given win.
	Open func(opts ...redlock.Option) (*redlock.Quorum, error)
}

// examination is one under way.
type examination struct {
	cfg     *Config
	servers []*server
	found   findings
	report  *Report
}

// settleWithin is how long the Quorum's looks may take: two node timeouts, and time for a machine
// that is busy.
const settleWithin = 3 * time.Second

// Examine examines, and returns when it is done or ctx ends: then with what it has found by then.
// It writes nothing of its own, but for the Quorum that takes part as a process which begins.
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

// ask connects to each node, and has it be asked, all at once. A URL that cannot be is left out:
// Open says what is wrong with it, and repeats no password.
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

// AskLimits asks the nodes by which limits the processes of the prefix go, and returns what has a
// Quorum go by them from the beginning: by itself it learns them only as nodes come to vote for it,
// which is late for one that looks once. Nodes that do not answer are passed over.
func AskLimits(ctx context.Context, cfg *Config) []redlock.Option {
	longest, largest := cfg.TTL, time.Duration(0)
	for _, s := range cfg.ask(func(s *server, client valkey.Client) { s.roster, _ = bridge.ReadRoster(ctx, client, cfg.Prefix) }) {
		ttl, skew := s.limits()
		longest, largest = max(longest, ttl), max(largest, skew)
	}
	options := []redlock.Option{redlock.WithMaxTTL(longest)}
	if largest > 0 {
		options = append(options, redlock.WithClockSkew(largest))
	}
	return options
}

// list looks at the list of nodes itself.
func (e *examination) list() {
	switch n := len(e.cfg.URLs); {
	case n == 1:
		e.found.add(Finding{Severity: Warning, Code: "one_node", Seen: "there is one node: when it fails, no lease can be had", Advice: "use three or five, each on a host of its own"})
	case n%2 == 0:
		e.found.add(Finding{Severity: Note, Code: "even_number", Seen: fmt.Sprintf("%d nodes survive no more failures than %d", n, n-1), Advice: "use an odd number: three or five"})
	}
}

// option is what to ask the node of a URL with.
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

// processes looks whether several servers answer at one address.
func (e *examination) processes() {
	for _, s := range e.servers {
		if len(s.runIDs) > 1 {
			e.found.add(s.finding(Fault, string(redlock.ConditionSeveralServers), fmt.Sprintf("%d servers answer at this address by turns: two processes may count different ones as the same node", len(s.runIDs)),
				"give each server an address of its own in the list, without a balancer, a virtual IP or a Service over several pods in front"))
		}
	}
}

// state looks at what each server says of itself, as far as a Quorum does not.
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

// clocks compares the servers' clocks with their median, and that with this machine's. Of which is
// wrong the Quorum warns.
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

// used looks at what processes of the prefix say of themselves, and at other prefixes.
func (e *examination) used() {
	ours, heard, unread := false, false, false
	var others []string
	for _, s := range e.servers {
		ours = ours || inUse(s.roster)
		if s.err == nil {
			votes := e.node(s.addr).Votes
			heard = heard || votes == nil || *votes // one that is full, say, cannot keep who uses it
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
	case unread: // this user may not know
	case !ours && len(others) > 0:
		e.found.add(Finding{Severity: Warning, Code: "another_prefix",
			Seen: fmt.Sprintf("no process uses the prefix %q; in use are %s", e.cfg.Prefix, strings.Join(view.All(others, strconv.Quote), ", ")), Advice: "--prefix, or TENURE_PREFIX: that of the replicas (WithPrefix)"})
	case !ours && heard:
		e.found.add(Finding{Severity: Note, Code: "unused",
			Seen:   fmt.Sprintf("no process has used the prefix %q within %v", e.cfg.Prefix, usedWithin),
			Advice: "nothing, if no replica runs now; else they have another prefix, or database number. A user who may SCAN, such as the operator of docs/nodes.md, is told of other prefixes"})
	}
}

// node is that of the report, which is made where there is none.
func (e *examination) node(addr string) *Node {
	i := slices.IndexFunc(e.report.Nodes, func(n *Node) bool { return n.Node == addr })
	if i < 0 {
		i = len(e.report.Nodes)
		e.report.Nodes = append(e.report.Nodes, &Node{Node: addr})
	}
	return e.report.Nodes[i]
}

// told looks at what replicas tell: how they see the nodes, and whether something is in use that
// should outlive the servers.
func (e *examination) told(ctx context.Context, c *admin.Client, statuses []redlock.NodeStatus) {
	for began := time.Now(); ; {
		replicas, err := c.Replicas(ctx)
		if err != nil {
			return // no node answers, which is found
		}
		e.report.Replicas = len(replicas)
		waited := time.Since(began)
		differ, again := differing(replicas, statuses, waited-lookAgain)
		if len(again) < len(differ) && waited < sayAgain && ctx.Err() == nil {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			continue
		}
		for _, v := range again {
			e.found.add(Finding{Warning, "seen_differently", []string{v.Node}, fmt.Sprintf("it votes for this process, and not for the replica %q: %s", v.Replica, v.Why),
				"see that replica's log, and the way from its host to the node"})
		}
		break
	}
	e.persistence(ctx, c)
}

// sayAgain is after how long a replica that lives has said again how it sees the nodes.
const sayAgain = bulletin.TellEvery * 3 / 2

// lookAgain is after how long a replica has looked again at a node that does not vote for it.
const lookAgain = 3 * time.Second

// differing are how replicas see nodes that vote for this process, and not for them, and those of
// them on cards that are younger than that. An older one may be of a time before the node voted, or
// of a replica that has ended.
func differing(replicas []admin.Replica, statuses []redlock.NodeStatus, age time.Duration) (all, young []admin.Seen) {
	for _, n := range admin.Seeing(statuses, replicas) {
		for _, seen := range n.SeenBy {
			if n.Votes && !seen.Votes {
				all = append(all, seen)
			}
		}
	}
	return all, slices.DeleteFunc(slices.Clone(all), func(seen admin.Seen) bool { return seen.Age >= age })
}

// persistence looks whether servers keep what should outlive all of them: ticks that were run, and
// pauses.
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
		return // a quorum keeps it
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
