//go:build long

package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// elsewhere are the commands of pages that are not run here, by how they begin, and why.
var elsewhere = map[string]string{
	"make ":                           "minutes to hours; CI and make nightly run them. Here make says what it would do",
	"docker ":                         "needs a builder and a registry; TestDockerfile and the tests of deploy and examples read the files",
	"kubectl ":                        "needs a cluster; the tests of deploy/kubernetes start servers from the manifests",
	"systemctl ":                      "needs systemd and root; TestUnits",
	"prometheus ":                     "does not end; make dashboard runs it",
	"go run ./examples/quickstart":    "kills processes; its own tests run it, and CI after all tests",
	"go run ./examples/demo ":         "does not end; TestFilesAreMade",
	"go run ./examples/observability": "does not end; its own tests run it",
	"curl -s http://127.0.0.1:9464/":  "needs examples/observability, whose tests read the same",
	"go run ./tools/defects ":         "minutes; make nightly",
	"go install ./cmd/tenure":         "build does it, before all tests of the binary",
	"go test -tags nightly ":          "minutes; make nightly",
	"scripts/track-record.sh ":        "needs the whole history; TestTrackRecord reads the rows",
}

// lines are what a command line takes that a sentence names without it, or with a word in capitals,
// in an order in which all of them work.
var lines = []struct{ command, flags, argument, tail string }{
	{"version", "", "", ""},
	{"doctor", "", "", ""},
	{"status", "", "", ""},
	{"-o", "", "", "status"},
	{"nodes", "", "", ""},
	{"jobs", "", "report", ""},
	{"runs", "", "report", ""},
	{"elections", "", "poller", ""},
	{"holder", "", "held", ""},
	{"run", "", "free", "-- true"},
	{"elect", "--once", "free", "-- true"},
	{"pause", "--why=test", "report", ""},
	{"resume", "--why=test", "report", ""},
	{"run-now", "--why=test", "slow", ""},
	{"cancel", "--why=test", "slow", ""},
	{"backfill", "--why=test --from=2026-03-01T00:00:00Z --to=2026-03-01T00:00:01Z", "report", ""},
	{"resign", "--why=test", "poller", ""},
	{"orders", "", "", ""},
	{"watch", "--timeout=3s", "", ""}, // it ends with an interruption, or so
	{"web", "", "", ""},               // TestWeb, and below
}

var (
	block    = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```$")
	inProse  = regexp.MustCompile("`(tenure [^`]+)`")
	sets     = regexp.MustCompile(`^(export )?(\w+=\S+ ?)+$`)
	ofCron   = regexp.MustCompile(`^(\S+ +){5}`)
	ofTree   = regexp.MustCompile(`(?:^|\./|-f )((?:examples|tools|scripts|cmd)/[\w./-]+)`)
	capitals = regexp.MustCompile(`\[?\b[A-Z]{2,}\b(\.\.\.\])?`)
	dots     = regexp.MustCompile(`--\w+ (TIME|\.\.\.)`)
)

// written is a document: the commands of its blocks, and those of tenure in its sentences.
type written struct {
	name            string
	commands, lines []string
}

// readPages reads all documents of a directory, which has nothing else than the repository.
func readPages(t *testing.T, dir string, files []string) (all []written) {
	t.Helper()
	shell := map[string]bool{"sh": true, "console": true, "crontab": true}
	for _, other := range []string{"", "acl", "conf", "go", "ini", "nginx", "promql", "sql", "text"} {
		shell[other] = false
	}
	for _, file := range files {
		if filepath.Ext(file) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		p := written{name: file}
		for _, found := range block.FindAllStringSubmatch(string(text), -1) {
			runs, known := shell[found[1]]
			require.True(t, known, "%s: is a block with %q for a shell?", file, found[1])
			if !runs {
				continue
			}
			prompt := strings.HasPrefix(found[2], "$ ") // then the other lines are what is printed
			for line := range strings.Lines(strings.ReplaceAll(found[2], "\\\n", "")) {
				command, prompted := strings.CutPrefix(strings.TrimSpace(line), "$ ")
				if found[1] == "crontab" {
					command = ofCron.ReplaceAllString(command, "")
				}
				if command != "" && prompted == prompt {
					p.commands = append(p.commands, command)
				}
			}
		}
		for _, span := range inProse.FindAllStringSubmatch(block.ReplaceAllString(string(text), ""), -1) {
			p.lines = append(p.lines, strings.Join(strings.Fields(span[1]), " "))
		}
		all = append(all, p)
	}
	return all
}

// A command of a page does what the page says. Blocks are carried out by a shell in a copy of the
// checkout, with real servers; so is each command line of tenure that stands in a sentence.
func TestCommandsOfPages(t *testing.T) {
	t.Parallel()
	binary := build(t)
	f := startServers(t, 3, valkeytest.WithPersistence()) // doctor has nothing to warn of
	replica(t, f)
	q := use(t, f.URLs())
	_, err := q.Acquire(t.Context(), "held")
	require.NoError(t, err)
	s := &story{t, append(nodesAt(f.URLs()...), "TENURE_NODE_TIMEOUT=1s")}
	sees(s, func(d statusDocument) bool {
		return d.Jobs.Total == 4 && len(d.Elections) > 0 && d.Elections[0].Leader != nil
	}, "status")

	above := t.TempDir()
	top := filepath.Join(above, "tenure")
	listed, err := exec.Command("git", "-C", "../..", "ls-files", "-co", "--exclude-standard").Output()
	require.NoError(t, err)
	files := strings.Fields(string(listed))
	for _, file := range files {
		copyFile(t, filepath.Join("../..", file), filepath.Join(top, file))
	}
	files = slices.DeleteFunc(files, func(file string) bool { _, err := os.Stat(filepath.Join(top, file)); return err != nil })
	service := filepath.Join(above, "service") // beside it
	require.NoError(t, os.Mkdir(service, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(service, "go.mod"), []byte("module service.example\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(above, ".curlrc"), []byte("fail\n"), 0o600)) // where the answer is an error
	environ := append(append(os.Environ(), s.environ...), "CURL_HOME="+above,
		"PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))

	var lookedUp []string
	used := make(map[string]bool)
	_, page := serveWeb(t, binary, s.environ, "--actions")
	at := strings.NewReplacer(
		"a.example.net b.example.net c.example.net", "127.0.0.1",
		"export TENURE_NODES_FILE=", "unset TENURE_NODES; export TENURE_NODES_FILE=",
		"valkey://10.0.0.1,valkey://10.0.0.2,valkey://10.0.0.3", strings.Join(f.URLs(), ","),
		"/etc/bash_completion.d/tenure", "../completion",
		"https://billing.example/tenure/", page,
		"nightly-report", "report", "./poll", "true", "./backup", "true")
	for _, p := range readPages(t, top, files) {
		lookedUp = append(lookedUp, p.lines...)
		before := ""
		for _, command := range p.commands {
			if reason := notHere(command, used); reason != "" {
				for _, part := range ofTree.FindAllStringSubmatch(command, -1) {
					_, err := os.Stat(filepath.Join(top, part[1]))
					require.NoError(t, err, "%s: %s", p.name, command)
				}
				if !strings.HasPrefix(command, "make ") {
					continue
				}
				command = strings.Replace(command, "make ", "make -n ", 1)
			}
			if sets.MatchString(command) {
				before += at.Replace(command) + "\n"
				continue
			}
			began, dir, again := time.Now(), top, time.Duration(0)
			switch {
			case strings.HasPrefix(command, "go mod edit "):
				dir = service
			case command == "tenure doctor" && strings.Contains(before, "TENURE_NODES_FILE"): // until the nodes vote
				urls := strings.Join(withCertificates(t, filepath.Join(top, "tls")), "\n")
				require.NoError(t, os.WriteFile(filepath.Join(top, "urls"), []byte(urls), 0o600))
				again = patience
			}
			for {
				cmd := exec.Command("bash", "-ec", before+at.Replace(command))
				cmd.Dir, cmd.Env = dir, environ
				out, err := cmd.CombinedOutput()
				if err == nil {
					break
				}
				require.Less(t, time.Since(began), again, "%s: %s: %v\n%s", p.name, command, err, out)
			}
			t.Logf("%s: %s: %v", p.name, command, time.Since(began))
		}
	}
	for begin := range elsewhere {
		require.True(t, used[begin], "no page has a command any more that begins with %q", begin)
	}

	run := 0
	for _, l := range lines {
		done, before := make(map[string]bool), run
		for _, line := range lookedUp {
			words := strings.SplitN(line, " ", 3)
			if words[1] != l.command {
				continue
			}
			run++
			rest := l.argument
			if len(words) == 3 {
				rest = capitals.ReplaceAllString(dots.ReplaceAllString(strings.ReplaceAll(words[2], "COMMAND", "true"), ""), l.argument)
			}
			if l.tail != "" && strings.HasPrefix(rest, "-") {
				rest = l.argument + " " + rest
			}
			full := strings.Join([]string{"tenure", l.command, l.flags, rest, l.tail}, " ")
			if l.command != "web" && !done[full] {
				done[full] = true
				t.Logf("%s: %s", line, full)
				var out []byte
				require.Eventually(t, func() bool { // a node may not vote for a moment
					cmd := exec.Command("bash", "-c", full)
					cmd.Env = environ
					var err error
					out, err = cmd.CombinedOutput()
					return err == nil
				}, patience, 10*poll, "%s: %s:\n%s", line, full, &out)
			}
		}
		require.Greater(t, run, before, "no page has tenure %s any more", l.command)
	}
	require.Len(t, lookedUp, run, "a command line of a sentence has no line in lines: %q", lookedUp)
}

// notHere says why a command is not run, if that is so.
func notHere(command string, used map[string]bool) string {
	for begin, reason := range elsewhere {
		if strings.HasPrefix(command+" ", begin) {
			used[begin] = true
			return reason
		}
	}
	return ""
}

// withCertificates starts servers with the certificates that a page has made for 127.0.0.1.
func withCertificates(t *testing.T, dir string) []string {
	t.Helper()
	file := func(name string) string { return filepath.Join(dir, name) }
	own, err := tls.LoadX509KeyPair(file("client.crt"), file("client.key"))
	require.NoError(t, err)
	authority, err := os.ReadFile(file("ca.crt"))
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(authority))
	// As old as they are: a server whose clock shows yesterday takes no certificate of today.
	return valkeytest.Start(t, 3,
		valkeytest.WithTLS(&tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{own}, ServerName: "127.0.0.1"}),
		valkeytest.WithArgs("--tls-ca-cert-file", file("ca.crt"), "--tls-cert-file", file("127.0.0.1.crt"), "--tls-key-file", file("127.0.0.1.key"))).URLs()
}
