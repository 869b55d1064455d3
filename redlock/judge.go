package redlock

import (
	"fmt"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// minMajor is the first major version whose script cache is neither replicated nor written to the
// AOF (https://github.com/redis/redis/pull/9812). Valkey gives 7.2.4 as its redis_version.
const minMajor = 7

// judge returns what keeps the server from voting, whatever its age.
func judge(s *wire.ServerInfo, acceptReplicas bool) *ConditionError {
	switch {
	case s.Major() < minMajor: //mutant:old-server-votes
		return &ConditionError{Condition: ConditionUnsupported, Detail: fmt.Sprintf("version %q", s.Version)}
	case s.Loading:
		return &ConditionError{Condition: ConditionLoading, Detail: "it reads its data"}
	case s.Role != "master": //mutant:replica-votes
		return &ConditionError{Condition: ConditionReplica, Detail: fmt.Sprintf("its role is %q, its master %s", s.Role, s.Master)}
	case s.Cluster: //mutant:cluster-server-votes
		return &ConditionError{Condition: ConditionMoved, Detail: "it runs in cluster mode"}
	case s.Replicas > 0 && !acceptReplicas: //mutant:gate-replicated-master
		return &ConditionError{Condition: ConditionReplicated, Detail: fmt.Sprintf("it has %d replica(s)", s.Replicas)}
	case s.Promoted && !acceptReplicas: //mutant:former-replica-votes
		return &ConditionError{Condition: ConditionReplicated, Detail: "it was a replica, or had one (master_replid2 is set; it is cleared repl-backlog-ttl after the last replica left)"}
	}
	return nil
}

// risk returns what may make the server forget leases although it votes.
func risk(s *wire.ServerInfo) *ConditionError {
	if s.Limit > 0 && s.Policy != "" && s.Policy != "noeviction" { //mutant:eviction-unmentioned
		return &ConditionError{Condition: ConditionEvicting, Detail: fmt.Sprintf("maxmemory is %d bytes and maxmemory-policy %s", s.Limit, s.Policy)}
	}
	return nil
}
