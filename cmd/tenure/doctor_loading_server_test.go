package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// documented starts servers with the files of examples/nodes, without TLS, which that page allows,
// and with another line for the default user if one is given. It returns the file of the users.
func documented(t *testing.T, defaultUser string) (f *valkeytest.Fleet, users string) {
	t.Helper()
	dir := t.TempDir()
	users = filepath.Join(dir, "users.acl")
	acl, err := os.ReadFile("../../examples/nodes/users.acl")
	require.NoError(t, err)
	writeUsers(t, users, strings.NewReplacer("OPERATOR-PASSWORD", "op", "BILLING-PASSWORD", "p4ss").Replace(string(acl)), defaultUser)
	conf, err := os.ReadFile("../../examples/nodes/valkey.conf")
	require.NoError(t, err)
	text := regexp.MustCompile(`(?m)^(tls-.*|port .*|bind .*)\n`).ReplaceAllString(string(conf), "")
	file := filepath.Join(dir, "valkey.conf")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "/etc/valkey", dir)), 0o600))
	return startServers(t, 3, valkeytest.WithConfig(file), valkeytest.WithUser("operator", "op")), users
}

// writeUsers writes the file of the users.
func writeUsers(t *testing.T, file, acl, defaultUser string) {
	t.Helper()
	if defaultUser != "" {
		acl = regexp.MustCompile(`(?m)^user default .*$`).ReplaceAllLiteralString(acl, defaultUser)
	}
	require.NoError(t, os.WriteFile(file, []byte(acl), 0o600))
}

// doctorFinds has doctor examine nodes, and returns what it finds but for quarantines: code,
// severity and how many nodes.
func doctorFinds(t *testing.T, urls []string) (all []string, said string) {
	t.Helper()
	got := call(t, nodesAt(urls...), "doctor", "-o", "json", "--node-timeout", "1s", "--prefix", "billing")
	var d doctorDocument
	require.NoError(t, json.Unmarshal([]byte(got.out), &d), "%s%s", got.out, got.err)
	all = []string{}
	for _, f := range d.Findings {
		if f.Code != "quarantined" {
			all = append(all, fmt.Sprintf("%s %s of %d", f.Severity, f.Code, len(f.Nodes)))
		}
	}
	return all, got.out
}

// Nothing is wrong with servers of the documented files. A service's user is told what it may not
// ask.
func TestDoctorOfTheDocumentedNodes(t *testing.T) {
	t.Parallel()
	f, _ := documented(t, "")
	use(t, f.URLs(), redlock.WithPrefix("billing"))
	all, said := doctorFinds(t, f.URLs())
	require.Empty(t, all, said)
	all, said = doctorFinds(t, as(f, "billing:p4ss"))
	require.Equal(t, []string{"note default_user of 3"}, all, said)
	require.Contains(t, said, "ACL SETUSER billing +acl|dryrun")
}

// A server that drops writes when it loads its file is found before it does, and after. When the
// default user is mended, its file has them again, as docs/operations.md says.
func TestDoctorFindsDroppedWrites(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"fault"}, severities(t)["writes_dropped"], "docs/steering.md")
	f, users := documented(t, "user default off")
	q := use(t, f.URLs(), redlock.WithPrefix("billing"))
	pause(t, q)
	node := f.Node(1)
	const journal = "billing:{}:journal:orders" // which is written and cut in one script
	require.Eventually(t, func() bool { return slices.Contains(node.Keys(t), journal) }, patience, poll)

	all, said := doctorFinds(t, f.URLs())
	require.Equal(t, []string{"warning default_user of 3"}, all, said)
	require.Contains(t, said, "no permissions to run the 'select' command")

	require.NoError(t, q.Close()) // or it would tell the node again
	require.NoError(t, node.Stop())
	require.NoError(t, node.Restart(true))
	require.NotContains(t, node.Keys(t), journal)
	for _, test := range []struct {
		urls []string
		want string
	}{
		{f.URLs(), "warning default_user of 3"},
		{as(f, "billing:p4ss"), "note default_user of 3"},
	} {
		all, said = doctorFinds(t, test.urls)
		require.Equal(t, []string{"fault writes_dropped of 1", test.want}, all, said)
		require.Contains(t, said, "its file still has the writes")
	}

	acl, err := os.ReadFile(users)
	require.NoError(t, err)
	writeUsers(t, users, string(acl), "user default off ~* &* +@all")
	for _, n := range f.Nodes() {
		require.NoError(t, n.Do(t, "ACL", "LOAD").Error())
	}
	all, said = doctorFinds(t, f.URLs())
	require.Equal(t, []string{"fault writes_dropped of 1"}, all, said)
	require.NoError(t, node.Restart(true))
	require.Contains(t, node.Keys(t), journal)
	all, said = doctorFinds(t, f.URLs())
	require.Empty(t, all, said)
}

// It is the rights that count, for what scripts write under the prefix, and where they are enough
// nothing is dropped.
func TestDoctorTriesTheDefaultUser(t *testing.T) {
	t.Parallel()
	for user, want := range map[string][]string{
		"user default on nopass ~* &* +@all":             {},
		"user default off ~billing:* +@all":              {},
		"user default off ~* +@write +select":            {},
		"user default off ~* +@write":                    {"warning default_user of 3"},
		"user default off ~* +@all -zadd":                {"warning default_user of 3"},
		"user default off ~payments:* +@all":             {"warning default_user of 3"},
		"user default on nopass ~* &* -@all +ping +info": {"warning default_user of 3"},
	} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			f, _ := documented(t, user)
			q := use(t, f.URLs(), redlock.WithPrefix("billing"))
			pause(t, q)
			all, said := doctorFinds(t, f.URLs())
			require.Equal(t, want, all, said)
			if len(want) > 0 {
				return
			}
			before := f.Node(0).Keys(t)
			require.NoError(t, q.Close())
			require.NoError(t, f.Node(0).Restart(true))
			require.Subset(t, f.Node(0).Keys(t), before)
			all, said = doctorFinds(t, f.URLs())
			require.Empty(t, all, said)
		})
	}
}
