package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

// ServerInfo is what INFO tells about a server process.
type ServerInfo struct {
	Name     string // "valkey 8.0.1", or "redis 7.2.4"; empty if INFO has neither version
	Version  string // of the protocol: redis_version, which Valkey keeps at 7.2.4
	RunID    string // new with each process
	Uptime   time.Duration
	Time     time.Duration // its wall clock, since 1970
	Cluster  bool          // redis_mode, or server_mode as Valkey 8 says
	Role     string
	Master   string // a replica's master
	Replicas int
	ReplID   string
	Promoted bool // this process was a replica, or the one whose data it loaded was
	Loading  bool
	Limit    int64 // maxmemory in bytes; 0 for none
	Policy   string
}

// InfoSections are the sections of INFO that ParseInfo needs.
var InfoSections = []string{"server", "replication", "memory", "persistence"}

// RunIDLength is the length of a run_id, in hexadecimal digits (CONFIG_RUN_ID_SIZE of
// src/server.h).
const RunIDLength = 40

// ParseInfo reads a reply to INFO. It skips unknown lines. It returns a *Fault for a Sentinel, and
// for a reply without a valid run_id, uptime or time.
func ParseInfo(text string) (*ServerInfo, error) {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	if fields["redis_mode"] == "sentinel" || fields["server_mode"] == "sentinel" {
		return nil, &Fault{Condition: Sentinel, Detail: "it is a Sentinel, which keeps no data"}
	}
	s := &ServerInfo{
		Version:  fields["redis_version"],
		RunID:    fields["run_id"],
		Cluster:  fields["redis_mode"] == "cluster" || fields["server_mode"] == "cluster",
		Role:     fields["role"],
		ReplID:   fields["master_replid"],
		Promoted: strings.Trim(fields["master_replid2"], "0") != "",
		Loading:  fields["loading"] == "1",
		Policy:   fields["maxmemory_policy"],
	}
	for _, name := range []string{"redis", "valkey"} { // Valkey says both
		if version := fields[name+"_version"]; version != "" {
			s.Name = name + " " + version
		}
	}
	if host := fields["master_host"]; host != "" {
		s.Master = host + ":" + fields["master_port"]
	}
	if !isRunID(s.RunID) {
		return nil, &Fault{Condition: Unsupported, Detail: fmt.Sprintf("INFO gives no run_id of %d hexadecimal digits", RunIDLength)}
	}
	seconds, err := strconv.ParseInt(fields["uptime_in_seconds"], 10, 64)
	if err != nil || seconds > maxUptime {
		return nil, &Fault{Condition: Unsupported, Detail: "INFO gives no uptime_in_seconds"}
	}
	s.Uptime = time.Duration(max(seconds, 0)) * time.Second // negative when the clock was set back to before its start
	clock, err := strconv.ParseInt(fields["server_time_usec"], 10, 64)
	if err != nil || clock <= 0 || clock > maxUptime*1e6 {
		return nil, &Fault{Condition: Unsupported, Detail: "INFO gives no server_time_usec"}
	}
	s.Time = time.Duration(clock) * time.Microsecond
	s.Replicas, _ = strconv.Atoi(fields["connected_slaves"])
	s.Limit, _ = strconv.ParseInt(fields["maxmemory"], 10, 64)
	return s, nil
}

// maxUptime bounds uptimes and times since 1970, in seconds: a century, far below the bound of
// time.Duration.
const maxUptime = 100 * 366 * 24 * 60 * 60

// isRunID reports whether a text is a run_id. It is strict, because the run_id becomes a word of
// the texts that scripts store.
func isRunID(s string) bool {
	return len(s) == RunIDLength && strings.Trim(s, "0123456789abcdef") == ""
}

// Major returns the first number of the version; 0 if there is none.
func (s *ServerInfo) Major() int {
	text, _, _ := strings.Cut(s.Version, ".")
	n, _ := strconv.Atoi(text)
	return n
}

// InfoCommand asks a server about itself.
func InfoCommand(client Builder) valkey.Completed {
	return client.B().Info().Section(InfoSections...).Build()
}

// TimeCommand asks a server for its clock.
func TimeCommand(client Builder) valkey.Completed { return client.B().Time().Build() }

func infoAnswer(_ *Call, msg valkey.ValkeyMessage, r reading) Answer {
	info, err := ParseInfo(r.text(msg))
	if err != nil {
		r.fail(err)
		return Answer{}
	}
	return Answer{Verdict: OK, Server: info.Time}.With(More{Info: info})
}

// timeAnswer reads a reply to TIME.
func timeAnswer(_ *Call, msg valkey.ValkeyMessage, r reading) Answer {
	parts := r.parts(msg, 2)
	return Answer{Verdict: OK, Server: r.clock(parts[0], parts[1])}
}

// ServerTime turns the two numbers of TIME, seconds and microseconds, into a duration since 1970.
func ServerTime(seconds, micros int64) (time.Duration, error) {
	const farFuture = 8_000_000_000 // the year 2223, below what time.Duration holds
	if seconds < 0 || seconds > farFuture || micros < 0 || micros > 999_999 {
		return 0, fmt.Errorf("%w: time %d s %d us", ErrUnexpected, seconds, micros)
	}
	return time.Duration(seconds)*time.Second + time.Duration(micros)*time.Microsecond, nil
}
