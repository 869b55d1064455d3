package redlocktest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// headStart is the uptime that a node claims when its fleet starts. It exceeds
// the quarantine of the longest TTL, which is a day.
const headStart = 48 * time.Hour

// infoSections are the sections of INFO that a process answers itself, in the
// server's order. The remaining ones are left to miniredis.
var infoSections = []string{"server", "memory", "persistence", "replication"}

// info returns the reply to INFO with the given arguments, and false if the reply should come from
// miniredis. As on a server, INFO without arguments has every section, and INFO with several skips
// unknown ones.
func (p *process) info(args []string) (string, bool) {
	wanted := infoSections
	if len(args) > 0 {
		wanted = nil
		for _, arg := range args {
			switch section := strings.ToLower(arg); section {
			case "all", "default", "everything":
				wanted = infoSections
			default:
				wanted = append(wanted, section)
			}
		}
	}
	var out strings.Builder
	known := len(args) != 1
	for _, section := range infoSections {
		if !slices.Contains(wanted, section) {
			continue
		}
		known = true
		if out.Len() > 0 {
			out.WriteString("\r\n")
		}
		out.WriteString(p.infoSection(section))
	}
	return out.String(), known
}

func (p *process) infoSection(section string) string {
	switch section {
	case "server":
		uptime := int64((time.Since(p.started) + time.Duration(p.clockOffset.Load())) / time.Second)
		return fmt.Sprintf("# Server\r\nredis_version:7.2.4\r\nserver_name:redlocktest\r\nredis_mode:standalone\r\n"+
			"run_id:%s\r\ntcp_port:%s\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\nserver_time_usec:%d\r\n",
			p.runID, p.node.addr.port(), uptime, uptime/(24*60*60), time.Now().Add(time.Duration(p.clockOffset.Load())).UnixMicro())
	case "memory":
		return "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
	case "persistence":
		return "# Persistence\r\nloading:0\r\naof_enabled:0\r\n"
	default:
		return "# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\n"
	}
}

// newRunID returns 40 hexadecimal digits, as a server draws at each start.
func newRunID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
