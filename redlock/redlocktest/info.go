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

// info returns the reply to INFO with the given arguments, and false if the reply should come from
// miniredis, which has the other sections. As on a server, INFO without arguments has every
// section, and INFO with several skips unknown ones.
func (p *process) info(args []string) (string, bool) {
	offset := time.Duration(p.clockOffset.Load())
	uptime := int64((time.Since(p.started) + offset) / time.Second)
	var texts []string
	for _, section := range [...]struct{ name, text string }{ // in the server's order
		{"server", fmt.Sprintf("# Server\r\nredis_version:7.2.4\r\nserver_name:redlocktest\r\nredis_mode:standalone\r\n"+
			"run_id:%s\r\ntcp_port:%s\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\nserver_time_usec:%d\r\n",
			p.runID, p.node.addr.port(), uptime, uptime/(24*60*60), time.Now().Add(offset).UnixMicro())},
		{"memory", "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"},
		{"persistence", "# Persistence\r\nloading:0\r\naof_enabled:0\r\n"},
		{"replication", "# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\n"},
	} {
		wanted := func(arg string) bool {
			return slices.Contains([]string{section.name, "all", "default", "everything"}, strings.ToLower(arg))
		}
		if len(args) == 0 || slices.ContainsFunc(args, wanted) {
			texts = append(texts, section.text)
		}
	}
	return strings.Join(texts, "\r\n"), len(texts) > 0 || len(args) > 1
}

// newRunID returns 40 hexadecimal digits, as a server draws at each start.
func newRunID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
