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

// server is what one node says, asked directly.
type server struct {
	addr    string
	option  valkey.ClientOption
	err     error             // why nothing is known
	info    map[string]string // of INFO
	runIDs  []string          // of the processes that answered at its address
	at      time.Time         // its clock
	asked   time.Time         // when that was, by this process's clock, in the middle of the round trip
	trip    time.Duration
	roster  []bridge.RosterList // who uses it
	unread  bool                // that may not be known to this user
	others  []string            // prefixes that are in use there besides
	records bool                // ticks or pauses of the prefix are kept there
	missing []lack              // rights, of those that were tried
	untried error               // why others were not
	reads   bool                // its user only reads
	loading loading             // what its default user would have it drop
}

const (
	// connections is how often a node is connected to. Of two servers behind a balancer that picks
	// one at random, one stays unseen once in 2^11 times.
	connections = 12
	// scanKeys bounds how many keys are looked at for other prefixes.
	scanKeys = 200_000
	scanPage = 1000
	// mostPrefixes bounds how many are named.
	mostPrefixes = 20
)

// ask asks a node all that is asked of it directly. It ends with ctx.
func (s *server) ask(ctx context.Context, client valkey.Client, prefix string) {
	began := time.Now()
	results := client.DoMulti(ctx, client.B().Time().Build(), client.B().Info().Section("everything").Build())
	s.trip = time.Since(began)
	s.asked = began.Add(s.trip / 2)
	if s.err = results[1].Error(); s.err == nil {
		text, _ := results[1].ToString() // which worked
		s.info = parseInfo(text)
		s.see(s.info["run_id"])
	} else if !answered(s.err) {
		return
	}
	if at, err := results[0].AsIntSlice(); err == nil && len(at) == 2 {
		s.at = time.Unix(at[0], at[1]*1000)
	}
	roster, err := bridge.ReadRoster(ctx, client, prefix) // what cannot be read is told of as a missing right
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

// connectAgain asks over further connections which server answers, and at each address that the
// node's name has. Those that fail say nothing.
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

// prefixes looks for other prefixes that are in use, and for records of the own one, where the user
// may list keys.
func (s *server) prefixes(ctx context.Context, client valkey.Client, prefix string) {
	const suffix, record = ":roster", ":register"
	const either = "*:r[oe][sg][ti]*" // of rost and regi; a server sends no others
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
		if cursor = page.Cursor; cursor == 0 || looked >= scanKeys { // or there are too many to look at all
			return
		}
	}
}

// inUse reports whether a process has used the server of late.
func inUse(all []bridge.RosterList) bool {
	return slices.ContainsFunc(all, func(l bridge.RosterList) bool { return l.Refused == "" && l.Age < usedWithin })
}

// limits are the longest TTL and the largest clock skew that processes of the prefix use, by which
// they tell for how long a node is quarantined; 0 for one that is not known.
func (s *server) limits() (ttl, skew time.Duration) {
	for _, is := range s.roster {
		ttl, skew = max(ttl, is.MaxTTL), max(skew, is.Skew)
	}
	return ttl, skew
}

// usedWithin is more than processes take to say again which nodes they use.
const usedWithin = 30 * time.Second

// ahead is by how much its clock is ahead of this process's.
func (s *server) ahead() time.Duration { return s.at.Sub(s.asked) }

// number is a field of INFO; 0 where it is none.
func (s *server) number(field string) int64 {
	n, _ := strconv.ParseInt(s.info[field], 10, 64)
	return n
}

// finding is something that is wrong with the node.
func (s *server) finding(severity Severity, code, seen, advice string) Finding {
	return Finding{severity, code, []string{s.addr}, seen, advice}
}

// userName is the ACL user of the URL.
func (s *server) userName() string { return cmp.Or(s.option.Username, "default") }

// parseInfo reads a reply to INFO. Its values are a server's, and are not trusted.
func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for l := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(l), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
