package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/resp"
	"github.com/tenure-dev/tenure/redlock/internal/clocks"
	"github.com/tenure-dev/tenure/redlock/internal/listen"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/roster"
	"github.com/tenure-dev/tenure/redlock/internal/waitqueue"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Quorum is a set of independent masters on which leases are held. Make one with Open and share it:
// it is safe for concurrent use. It keeps one connection a node for all its leases, and a second
// one a node once something waits in Acquire. Close it when done.
//
// A nil Quorum, which comes with an error, and a zero one behave like a closed one. Their methods
// do not panic, so that a deferred Close may stand before the check of the error.
type Quorum struct {
	cfg        *config
	nodes      []*member
	need       int // nodes that make a quorum
	clock      *clock.Clock
	extender   *extender
	operations sync.Pool // of *operation
	listener   *listen.Listener
	queue      *waitqueue.Queue
	lines      *lines
	opened     atomic.Pointer[chan struct{}] // closed when a node next opens its gate
	rosterKeys wire.Keys                     // of the roster
	news       *news
	clocks     *clocks.Clocks
	largest    atomic.Uint64 // token that was drawn or seen last, see draw
	roster     *roster.Roster
	holders    atomic.Uint64 // names that NewIdentity has made

	extensions atomic.Uint64 // extensions of several leases: each has its number in its name
	starving   atomic.Int32  // acquisitions that wait and have had no quorum for a TTL

	extras sync.Map // what other packages keep for the Quorum, see package bridge
	ends   sync.Once
	mu     sync.Mutex
	closed bool          // guarded by mu
	done   chan struct{} // closed by Close
	work   sync.WaitGroup
	rounds sync.WaitGroup // acquisitions under way, which Close lets roll back; added to with mu held
}

// Open makes a Quorum of the nodes at urls, such as valkey://user:password@host:6379/0, valkeys://
// (TLS), redis:// or rediss://, or unix:///path. It returns without waiting for any of them:
// connections are made in the background, and a node that cannot be reached yet joins when it can.
//
// All processes of a prefix need the same nodes, by their names: the host and port of a URL, or its
// parameter name, as in valkey://new-host:6379?name=c. A process that begins with other nodes than
// the running processes have is refused: its nodes do not vote (ConditionAnotherList) until the
// others have ended. Open returns no error for that; Healthy, Nodes and the log say it. See
// docs/guarantees.md.
//
// An odd number of nodes is best. An even number works and is warned about, because it survives no
// more failures than one node less. A single node is warned about, too. Errors are *OptionError,
// which names the URL by its place in urls and says what is wrong with it, without its credentials.
// FromEnv takes the nodes and the options from the environment.
func Open(urls []string, opts ...Option) (*Quorum, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if len(urls) == 0 {
		return nil, &OptionError{"urls", "is empty: give the URL of each node, 3 or 5 of them"}
	}
	q := newQuorum(cfg, len(urls))
	for i, url := range urls {
		if err := q.addNode(url); err != nil {
			return nil, &OptionError{fmt.Sprintf("urls[%d]", i), err.Error()}
		}
	}
	q.start()
	return q, nil
}

// nodeOption turns a URL into the options of a client that keeps the protocol's promises: commands
// in order on one connection, nothing repeated behind the protocol's back, nothing that hangs.
func (c *config) nodeOption(url string) (valkey.ClientOption, error) {
	o, err := parseURL(url)
	if err != nil {
		return o, err
	}
	for _, adjust := range []func(string, *valkey.ClientOption){c.certificates, c.clientOption} {
		if adjust != nil {
			adjust(url, &o)
		}
	}
	if len(o.InitAddress) == 0 {
		return o, fmt.Errorf("has no address")
	}
	if len(o.InitAddress) > 1 {
		return o, fmt.Errorf("has %d addresses: a node is one server, and no Cluster", len(o.InitAddress))
	}
	if o.Sentinel.MasterSet != "" {
		return o, errors.New(noSentinel)
	}
	if o.ClientSetInfo == nil {
		// A failure of CLIENT SETINFO would hide the error of the handshake before it, such as too
		// many clients.
		o.ClientSetInfo = valkey.DisableClientSetInfo
	}
	timeout := c.exchangeTimeout()
	o.ForceSingleClient = true
	o.DisableRetry = true
	o.DisableCache = true
	o.DisableAutoPipelining = false
	o.PipelineMultiplex = -1
	o.BlockingPipeline = -1 // no pipeline is too long for that one connection
	// A connection has one command under way, or a few; valkey-go's defaults are for thousands.
	o.ReadBufferEachConn = cmp.Or(o.ReadBufferEachConn, connBuffer)
	o.WriteBufferEachConn = cmp.Or(o.WriteBufferEachConn, connBuffer)
	o.RingScaleEachConn = cmp.Or(o.RingScaleEachConn, connRingScale)
	// Everything goes to the server that the URL names.
	o.Standalone = valkey.StandaloneOption{}
	o.SendToReplicas, o.ReadNodeSelector = nil, nil
	o.ReplicaOnly, o.EnableReplicaAZInfo, o.AZFromInfo = false, false, false
	o.OnInvalidations = nil
	o.ConnLifetime = 0
	o.ConnWriteTimeout = timeout
	o.Dialer.Timeout = timeout
	// A name may have an IPv6 address that is silent, and an IPv4 address that is not.
	o.Dialer.FallbackDelay = cmp.Or(o.Dialer.FallbackDelay, min(timeout/4, fallbackDelay))
	o.Dialer.KeepAlive = pingEvery
	if !o.Dialer.KeepAliveConfig.Enable {
		o.Dialer.KeepAliveConfig = c.keepAlive()
	}
	resp.GuardClient(&o)
	return o, nil
}

// connBuffer and connRingScale bound what a connection buffers. connBuffer is in bytes, each way:
// about a command with its 128 calls. connRingScale is a power of two: so many commands without an
// answer.
const (
	connBuffer    = 32 << 10
	connRingScale = 7
)

// maxExchange and maxIdle bound the times that would follow from a very long TTL.
const (
	maxExchange = 2 * time.Second
	maxIdle     = 5 * time.Second
)

// The kernel probes a connection on which nothing is sent, such as one for calls. Its probes say
// nothing of a server process that hangs; such a process wakes up with its connections. Nor can
// they tell that a proxy in between has lost the server. For that valkey-go sends a PING when
// nothing has come since it last looked, but it looks seldom.
const (
	pingEvery  = time.Minute
	idleProbes = 3
)

// fallbackDelay is net's default. Where a connection has little more time, the delay is shorter.
const fallbackDelay = 300 * time.Millisecond

// keepAlive has a dead connection noticed after half a TTL without traffic, 5 s at most, and three
// probes, one a second: 8 s by default. Kernels count in seconds.
func (c *config) keepAlive() net.KeepAliveConfig {
	idle := min(max(c.lease.ttl/2, time.Second), maxIdle)
	return net.KeepAliveConfig{Enable: true, Idle: idle, Interval: time.Second, Count: idleProbes}
}

// exchangeTimeout is how long a connection may go without an answer before it is given up. It is
// longer than a node's timeout, because a new connection costs more than a late reply, and far
// below the TTL.
func (c *config) exchangeTimeout() time.Duration {
	timeout := c.timeout(c.lease.ttl)
	return max(min(2*timeout, timeout+maxExchange), min(c.lease.ttl/5, maxExchange))
}

func newQuorum(cfg *config, nodes int) *Quorum {
	q := &Quorum{
		cfg:   cfg,
		need:  nodes/2 + 1,
		clock: clock.New(),
		lines: newLines(),
		done:  make(chan struct{}),
	}
	q.gateOpens()
	q.news = newNews(cfg.logger, q.clock, q.lines)
	q.extender = &extender{q: q, wake: make(chan struct{}, 1), groups: make(map[rhythm]*group), lanes: make([]lane, nodes)}
	q.rosterKeys = wire.RosterKeys(cfg.prefix)
	q.clocks = clocks.New(nodes, q.need, cfg.skew)
	return q
}

// addNode adds the node at a URL.
func (q *Quorum) addNode(url string) error {
	o, err := q.cfg.nodeOption(url)
	if err != nil {
		return err
	}
	addr := strings.Join(o.InitAddress, ",")
	name, err := nodeName(url, addr)
	if err != nil {
		return err
	}
	for i, m := range q.nodes {
		switch {
		case m.addr == addr:
			return fmt.Errorf("names the same node as urls[%d], %s: a node has one vote", i, addr)
		case m.name == name:
			return fmt.Errorf("has the name of urls[%d], %s: give each node one of its own", i, name)
		}
	}
	m := &member{q: q, index: len(q.nodes), addr: addr, name: name, option: o}
	m.link = node.New(node.Config{
		Connect: func(ctx context.Context, changed func()) (valkey.Client, error) {
			return node.NewClient(ctx, o, changed)
		},
		Timeout:     q.cfg.exchangeTimeout(),
		Clock:       q.clock,
		Keys:        &q.rosterKeys,
		RestartGate: q.cfg.restartGate, AcceptReplicas: q.cfg.acceptReplicas,
		Quarantine:  q.cfg.quarantine,
		Longer:      q.longer,
		Absence:     roster.Absence,
		Drift:       q.cfg.drift,
		SampleEvery: q.cfg.sampleEvery(), LookEvery: q.cfg.inspectEvery(),
		Join: func(ctx context.Context, runID string, seen clock.Instant, age time.Duration) (time.Duration, error) {
			return q.roster.Join(ctx, m.index, runID, seen, age)
		},
		Counts:   func() bool { return q.roster.Counts(m.index) },
		Observer: observer{m},
	})
	q.nodes = append(q.nodes, m)
	return nil
}

func (q *Quorum) start() {
	q.roster = q.newRoster()
	q.listener = listen.New(len(q.nodes), q.cfg.exchangeTimeout(), func(ctx context.Context, i int) *node.Lasting {
		return node.NewLasting(ctx, q.nodes[i].option)
	})
	q.queue = waitqueue.New(waitqueue.Config{
		Now: q.now, Listener: q.listener, Need: q.need, Channel: q.cfg.channel, MaxDelay: maxMaxTTL,
		Subscribed: func(i int, err error) { q.nodes[i].cannotCall(err) },
	})
	switch n := len(q.nodes); {
	case n == 1:
		q.cfg.logger.WarnContext(context.Background(), "redlock: a single node: while it is away nobody can acquire or keep a lease; use 3 or 5 independent nodes",
			"node", q.nodes[0].addr)
	case n%2 == 0:
		q.cfg.logger.WarnContext(context.Background(), "redlock: an even number of nodes survives no more failures than one node less",
			"nodes", len(q.nodes), "quorum", q.need)
	}
	if !q.cfg.prefixed {
		q.cfg.logger.InfoContext(context.Background(), "redlock: no prefix was given: services that share these nodes share keys, elections and jobs of the same name; "+
			"give each its own with redlock.WithPrefix", "prefix", q.cfg.prefix)
	}
	q.work.Go(q.extender.run)
	for _, n := range q.nodes {
		go n.Run()
	}
	for _, n := range q.nodes {
		n.tell()
	}
}

// Close ends every lease that is still held, as lost for LostClosed, sends the releases that are
// still queued and closes the connections. It does not release the leases that it ends: their work
// may still be running, so their keys live on until they expire. Release first what should be free
// at once.
//
// Close waits at most two node timeouts for acquisitions under way. For nodes that do not answer it
// waits twice as long as a connection may be silent: 4 s with the defaults. A connection may be
// silent for a fifth of the TTL (2 s at most) or, where that is longer, for twice the node timeout
// (and no more than 2 s above it). Close also waits for the Quorum's own goroutines, on which
// tracers are called: there call it as go q.Close() only. It is safe to call more than once, and
// always returns nil.
func (q *Quorum) Close() error {
	if !q.none() {
		q.ends.Do(q.end)
	}
	return nil
}

// end closes the Quorum. Attempts that failed are taken back on the nodes that granted them, so end
// waits for the answers of all nodes. A node that does not answer has had the time of an
// acquisition.
func (q *Quorum) end() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	for _, l := range q.extender.close() {
		l.lose(LostClosed)
	}
	close(q.done)
	q.listener.Close()
	closeNodes := func() {
		for _, n := range q.nodes {
			n.Close()
		}
	}
	defer time.AfterFunc(2*q.cfg.timeout(q.cfg.maxTTL), closeNodes).Stop()
	q.rounds.Wait()
	closeNodes()
	for _, n := range q.nodes {
		n.Wait()
		n.tell()
	}
	q.listener.Wait()
	q.work.Wait()
}

// Closed returns a channel that is closed when Close is called. For a nil or zero Quorum the
// channel is closed.
func (q *Quorum) Closed() <-chan struct{} {
	if q.none() {
		return noLease.ctx.Done()
	}
	return q.done
}

// Identity returns the name under which leases are held, unless they are given one of their own
// (WithIdentity).
func (q *Quorum) Identity() string {
	if q.none() {
		return ""
	}
	return q.cfg.lease.identity
}

// none reports whether the Quorum is nil or zero.
func (q *Quorum) none() bool { return q == nil || q.cfg == nil }

// NewIdentity returns a name for one of several holders in this process, such as an Elector. It is
// the identity among the options (WithIdentity), or that of the Quorum, if the Quorum was given one
// (WithIdentity). Otherwise each call returns another name, which begins with the Quorum's. It does
// not report a wrong option: see Validate.
func (q *Quorum) NewIdentity(opts ...LeaseOption) string {
	if q.none() {
		return ""
	}
	identity := ""
	for _, o := range opts {
		var l leaseConfig
		if o != nil && o.applyLease(&l) == nil {
			identity = cmp.Or(l.identity, identity)
		}
	}
	if identity != "" {
		return identity
	}
	if q.cfg.named {
		return q.Identity()
	}
	return fmt.Sprintf("%s-%d", q.Identity(), q.holders.Add(1))
}

// begin registers a round of an acquisition, for which Close waits. It returns false if the Quorum
// has been closed.
func (q *Quorum) begin() bool { return q.unlessClosed(func() { q.rounds.Add(1) }) }

// later runs f in the background. It returns false, and does not run f, if the Quorum has been
// closed. Close does not wait for f before it closes the nodes, which ends what f asks of them.
func (q *Quorum) later(f func()) bool { return q.unlessClosed(func() { q.work.Go(f) }) }

// unlessClosed calls f with mu held, and reports whether it did.
func (q *Quorum) unlessClosed(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		f()
	}
	return !q.closed
}

func (q *Quorum) isClosed() bool {
	select {
	case <-q.Closed():
		return true
	default:
		return false
	}
}
