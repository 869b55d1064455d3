package redlock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// serverInfo is what INFO tells about a server process.
type serverInfo struct {
	version  string // of the protocol: redis_version
	runID    string // new with each process
	uptime   time.Duration
	cluster  bool // redis_mode, or server_mode as Valkey 8 says
	role     string
	master   string // a replica's master
	replicas int
	replID   string
	promoted bool // was a replica in this life or the one whose data it loaded
	loading  bool
	limit    int64 // maxmemory in bytes; 0 for none
	policy   string
}

// infoSections are the sections that parseInfo needs.
var infoSections = []string{"server", "replication", "memory", "persistence"}

// runIDLength is the length of a run_id, in hexadecimal digits (CONFIG_RUN_ID_SIZE of src/server.h).
const runIDLength = 40

// parseInfo reads a reply to INFO. Unknown lines are skipped; without a run_id it is none.
func parseInfo(text string) (*serverInfo, error) {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	if fields["redis_mode"] == "sentinel" || fields["server_mode"] == "sentinel" { //mutant:sentinel-taken-for-a-server
		return nil, &ConditionError{Condition: ConditionSentinel, Detail: "it is a Sentinel, which keeps no data"}
	}
	s := &serverInfo{
		version:  fields["redis_version"],
		runID:    fields["run_id"],
		cluster:  fields["redis_mode"] == "cluster" || fields["server_mode"] == "cluster",
		role:     fields["role"],
		replID:   fields["master_replid"],
		promoted: strings.Trim(fields["master_replid2"], "0") != "",
		loading:  fields["loading"] == "1",
		policy:   fields["maxmemory_policy"],
	}
	if host := fields["master_host"]; host != "" {
		s.master = host + ":" + fields["master_port"]
	}
	if !isRunID(s.runID) {
		return nil, &ConditionError{Condition: ConditionUnsupported, Detail: fmt.Sprintf("INFO gives no run_id of %d hexadecimal digits", runIDLength)}
	}
	seconds, err := strconv.ParseInt(fields["uptime_in_seconds"], 10, 64)
	if err != nil || seconds > maxUptime {
		return nil, &ConditionError{Condition: ConditionUnsupported, Detail: "INFO gives no uptime_in_seconds"}
	}
	s.uptime = time.Duration(max(seconds, 0)) * time.Second // negative when the clock was set back to before its start
	s.replicas, _ = strconv.Atoi(fields["connected_slaves"])
	s.limit, _ = strconv.ParseInt(fields["maxmemory"], 10, 64)
	return s, nil
}

// maxUptime is a century in seconds, far below what time.Duration holds.
const maxUptime = 100 * 366 * 24 * 60 * 60

// isRunID is strict, because the run_id becomes part of a script.
func isRunID(s string) bool {
	if len(s) != runIDLength {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// major is the first number of the version, and zero if there is none.
func (s *serverInfo) major() int {
	text, _, _ := strings.Cut(s.version, ".")
	n, _ := strconv.Atoi(text)
	return n
}

// minMajor is the first major version whose script cache is neither replicated nor written to the AOF
// (https://github.com/redis/redis/pull/9812). Valkey gives 7.2.4 as its redis_version.
const minMajor = 7

// judge returns what keeps the server from voting, whatever its age.
func (s *serverInfo) judge(acceptReplicas bool) *ConditionError {
	switch {
	case s.major() < minMajor: //mutant:old-server-votes
		return &ConditionError{Condition: ConditionUnsupported, Detail: fmt.Sprintf("version %q", s.version)}
	case s.loading:
		return &ConditionError{Condition: ConditionLoading, Detail: "it reads its data"}
	case s.role != "master": //mutant:replica-votes
		return &ConditionError{Condition: ConditionReplica, Detail: fmt.Sprintf("its role is %q, its master %s", s.role, s.master)}
	case s.cluster: //mutant:cluster-server-votes
		return &ConditionError{Condition: ConditionMoved, Detail: "it runs in cluster mode"}
	case s.replicas > 0 && !acceptReplicas: //mutant:gate-replicated-master
		return &ConditionError{Condition: ConditionReplicated, Detail: fmt.Sprintf("it has %d replica(s)", s.replicas)}
	case s.promoted && !acceptReplicas: //mutant:former-replica-votes
		return &ConditionError{Condition: ConditionReplicated, Detail: "it was a replica, or had one (master_replid2 is set; it is cleared repl-backlog-ttl after the last replica left)"}
	}
	return nil
}

// risk returns what may make the server forget leases although it votes.
func (s *serverInfo) risk() *ConditionError {
	if s.limit > 0 && s.policy != "" && s.policy != "noeviction" { //mutant:eviction-unmentioned
		return &ConditionError{Condition: ConditionEvicting, Detail: fmt.Sprintf("maxmemory is %d bytes and maxmemory-policy %s", s.limit, s.policy)}
	}
	return nil
}
