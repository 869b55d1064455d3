package node

import (
	"fmt"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// minMajor is the first major version whose script cache is neither replicated nor written to the
// AOF (https://github.com/redis/redis/pull/9812). Valkey gives 7.2.4 as its redis_version.
const minMajor = 7

// Judge returns what keeps the server from voting, whatever its age; nil for nothing.
func Judge(s *wire.ServerInfo, acceptReplicas bool) *wire.Fault {
	switch {
	case s.Major() < minMajor:
		return &wire.Fault{Condition: wire.Unsupported, Detail: fmt.Sprintf("version %q", s.Version)}
	case s.Loading:
		return &wire.Fault{Condition: wire.Loading, Detail: "it reads its data"}
	case s.Role != "master":
		return &wire.Fault{Condition: wire.Replica, Detail: fmt.Sprintf("its role is %q, its master %s", s.Role, s.Master)}
	case s.Cluster:
		return &wire.Fault{Condition: wire.Moved, Detail: "it runs in cluster mode"}
	case s.Replicas > 0 && !acceptReplicas:
		return &wire.Fault{Condition: wire.Replicated, Detail: fmt.Sprintf("it has %d replica(s)", s.Replicas)}
	case s.Promoted && !acceptReplicas:
		return &wire.Fault{Condition: wire.Replicated, Detail: "it was a replica, or had one (master_replid2 is set; it is cleared repl-backlog-ttl after the last replica left)"}
	}
	return nil
}

// Risk returns what may make the server forget leases although it votes; nil for nothing.
func Risk(s *wire.ServerInfo) *wire.Fault {
	if s.Limit > 0 && s.Policy != "" && s.Policy != "noeviction" {
		return &wire.Fault{Condition: wire.Evicting, Detail: fmt.Sprintf("maxmemory is %d bytes and maxmemory-policy %s", s.Limit, s.Policy)}
	}
	return nil
}
