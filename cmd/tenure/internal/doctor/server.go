package doctor

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/bridge"
)

// server is what one node says when it is asked directly.
type server struct {
	addr    string
	option  valkey.ClientOption
	err     error             // why the node could not be asked
	info    map[string]string // fields of INFO
	runIDs  []string          // run IDs of the processes that answered at the address
	at      time.Time         // the server's clock
	asked   time.Time         // when at was read, by this process's clock: the middle of the round trip
	trip    time.Duration
	roster  []bridge.RosterList // the processes that use the server
	unread  bool                // this user may not read the roster
	others  []string            // other prefixes that are in use on the server
	records bool                // the server has ticks or pauses of the prefix
	missing []lack              // missing rights, of those that were tried
	untried error               // why the other rights were not tried
	reads   bool                // the user only reads
	loading loading             // what the server would drop because of its default user
}

const (
	// connections is how many connections are made to a node. If a balancer picks one of two
	// servers at random, one server stays unseen once in 2^11 times.
	connections = 12
	// scanKeys limits how many keys are scanned for other prefixes.
	scanKeys = 200_000
	scanPage = 1000
	// mostPrefixes limits how many other prefixes are named.
	mostPrefixes = 20
)

// ask asks a node everything that it is asked directly. It ends with ctx.
func (s *server) ask(ctx context.Context, client valkey.Client, prefix string) {
	began := time.Now()
	results := client.DoMulti(ctx, client.B().Time().Build(), client.B().Info().Section("everything").Build())
	s.trip = time.Since(began)
	s.asked = began.Add(s.trip / 2)
	if s.err = results[1].Error(); s.err == nil {
		text, _ := results[1].ToString() // the call has succeeded
		s.info = parseInfo(text)
		s.see(s.info["run_id"])
	} else if !answered(s.err) {
		return
	}
	if at, err := results[0].AsIntSlice(); err == nil && len(at) == 2 {
		s.at = time.Unix(at[0], at[1]*1000)
	}
	roster, err := bridge.ReadRoster(ctx, client, prefix) // an unreadable roster is reported as a missing right
	said, answered := errors.AsType[*valkey.ValkeyError](err)
	s.roster, s.unread = roster, answered && refused(said)
	s.prefixes(ctx, client, prefix)
	s.missing, s.untried = lacking(ctx, client, prefix)
	if s.info["aof_enabled"] == "1" {
		s.loading = askLoading(ctx, client, prefix)
	}
	s.connectAgain(ctx)
}

func (s *server) see(runID string) {
	if runID != "" && !slices.Contains(s.runIDs, runID) {
		s.runIDs = append(s.runIDs, runID)
	}
}

// connectAgain asks over further connections which server answers, and at each address of the
// node's host name. Connections that fail are left out.
func (s *server) connectAgain(ctx context.Context) {
	targets := slices.Repeat([]string{s.addr}, connections-1)
	host, port, err := net.SplitHostPort(s.addr)
	if err == nil && net.ParseIP(host) == nil {
		addresses, _ := net.DefaultResolver.LookupHost(ctx, host)
		for _, a := range addresses {
			targets = append(targets, net.JoinHostPort(a, port))
		}
	}
	for _, target := range targets {
		if ctx.Err() != nil {
			return
		}
		option := s.option
		option.InitAddress = []string{target}
		client, err := valkey.NewClient(option)
		if err != nil {
			continue
		}
		if text, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString(); err == nil {
			s.see(parseInfo(text)["run_id"])
		}
		client.Close()
	}
}

// prefixes looks for other prefixes that are in use, and for records of its own prefix, if the user
// may list keys.
func (s *server) prefixes(ctx context.Context, client valkey.Client, prefix string) {
	const suffix, record = ":roster", ":register"
	const either = "*:r[oe][sg][ti]*" // fits :roster and :register; the server sends few other keys
	var cursor uint64
	for looked := 0; ; looked += scanPage {
		page, err := client.Do(ctx, client.B().Scan().Cursor(cursor).Match(either).Count(scanPage).Build()).AsScanEntry()
		if err != nil {
			return
		}
		for _, key := range page.Elements {
			if own, found := strings.CutSuffix(key, record); found && strings.HasPrefix(own, prefix+":{") && !strings.HasPrefix(own, prefix+":{order/") {
				s.records = true
			}
			other, found := strings.CutSuffix(key, suffix)
			if !found || other == prefix || strings.ContainsAny(other, "{}") || len(s.others) >= mostPrefixes {
				continue
			}
			if m, err := bridge.ReadRoster(ctx, client, other); err == nil && inUse(m) {
				s.others = append(s.others, other)
			}
		}
		if cursor = page.Cursor; cursor == 0 || looked >= scanKeys { // or there are too many keys to look at
			return
		}
	}
}

// inUse reports whether a process has used the server recently.
func inUse(all []bridge.RosterList) bool {
	return slices.ContainsFunc(all, func(l bridge.RosterList) bool { return l.Refused == "" && l.Age < usedWithin })
}

// limits returns the longest TTL and the largest clock skew of the processes of the prefix, or 0 if
// they are not known. The length of a node's quarantine depends on both.
func (s *server) limits() (ttl, skew time.Duration) {
	for _, is := range s.roster {
		ttl, skew = max(ttl, is.MaxTTL), max(skew, is.Skew)
	}
	return ttl, skew
}

// usedWithin is longer than the interval at which processes tell which nodes they use.
const usedWithin = 30 * time.Second

// ahead returns how far the server's clock is ahead of this process's clock.
func (s *server) ahead() time.Duration { return s.at.Sub(s.asked) }

// number returns a field of INFO as a number, or 0 if it is not one.
func (s *server) number(field string) int64 {
	n, _ := strconv.ParseInt(s.info[field], 10, 64)
	return n
}

// finding returns a finding about the node.
func (s *server) finding(severity Severity, code, seen, advice string) Finding {
	return Finding{severity, code, []string{s.addr}, seen, advice}
}

// userName returns the ACL user of the URL.
func (s *server) userName() string { return cmp.Or(s.option.Username, "default") }

// parseInfo parses a reply to INFO. Its values come from a server and are not trusted.
func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for l := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(l), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
