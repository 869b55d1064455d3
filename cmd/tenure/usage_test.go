package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// What cannot be is said, with what to do, and no password is repeated.
func TestUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	some := nodesAt("valkey://127.0.0.1:1")
	for _, of := range []struct {
		environ []string
		args    string
		says    string
	}{
		{nil, "status", "TENURE_NODES: is not set"},
		{some, "bogus", `unknown command "bogus" for "tenure": see tenure --help`},
		{some, "statsu", "Did you mean this? status: see"},
		{some, "status --bogus", "unknown flag: --bogus: see tenure status --help"},
		{some, "status x", `unknown command "x" for "tenure status"`},
		{some, "runs", "accepts 1 arg(s), received 0: see tenure runs --help"},
		{some, "run x true", "a command behind --"},
		{some, "runs --failed --since 0s", "--since 0s is not positive"},
		{some, "status -o yaml", `-o "yaml" is neither table nor json`},
		{some, "status --log loud", "--log"},
		{append(some, "TENURE_LOG=loud"), "status", `TENURE_LOG="loud": it is none of debug, info, warn, error and off`},
		{some, "status --clock-skew 2h", "WithClockSkew"},
		{some, "status --prefix {}", "WithPrefix"},
		{some, "status --node-timeout 1001ms", "--node-timeout 1.001s is above 1s, a quarter of the TTL of 4s, which is twice --clock-skew, and 1s at least: give 1s at most"},
		{some, "backfill x --why y --stop=false", "give --from and --to, or --stop"}, // Go's zero times are none
		{some, "backfill x --why y --from 2026-03-01T00:00:00Z --to never", `invalid argument "never" for "--to" flag`},
		{some, "backfill x --why y --from 2026-03-02T00:00:00Z --to 2026-03-01T00:00:00Z", "is after"},
		{some, "backfill x --why y --stop --to 2026-03-01T00:00:00Z", "[from to]"},
		{some, "doctor --node-timeout 2s", "give 1s at most"},
		{some, "pause x --why y --clock-skew 1ms --node-timeout 500ms", "give 250ms at most"},
		{append(some, "TENURE_NODE_TIMEOUT=2s"), "orders", "TENURE_NODE_TIMEOUT 2s is above 1s"},
		{append(some, "TENURE_NODE_TIMEOUT=2s"), "run x --ttl 4s -- true", "TENURE_NODE_TIMEOUT 2s is above 1s, a quarter of the TTL of 4s, which --ttl sets: give 1s at most"},
		{some, "elect x --node-timeout 3s -- true", "give 2.5s at most"},
		{some, "run x --tick=2999-01-02T15:04:05Z -- true", "no tick is granted before its time"},
		{some, "pause x", `required flag(s) "why" not set`},
		{some, "pause --why y", "name a job, or give --all"},
		{some, "pause x --all --why y", "not both"},
		{some, "pause x --why y --for -1s", "not positive"},
		{some, "pause x --why y --until tomorrow", "invalid argument"},
		{some, "pause x --why y --until 0001-01-01T00:00:00Z", "has passed"}, // Go's zero time, which is no end
		{some, "pause x --why y --for 1h --until 2006-01-02T15:04:05Z", "if any flags in the group"},
		{some, "pause x --why " + strings.Repeat("y", 1025), "bytes"},
		{some, "orders --limit 0", "not positive"},
		{some, "web --listen 8080", "no address and port"},
		{some, "web --listen 0.0.0.0:0", "--host"},
		{some, "web --listen 0.0.0.0:0 --host=", "--host is empty"},
		{some, "web --listen 10.0.0.1:0 --actions", "whoever reaches that address could give orders"},
		{some, "web --trace-url javascript:x", "trace"},
		{nil, "status --nodes valkey://ann:s3cret@127.0.0.1:1", "list of processes"},
		{nil, "status --nodes valkey://ann:s3%cret@127.0.0.1:1", "list of processes"},
		{nodesAt("valkey://ann:s3cret@127.0.0.1:x"), "status", "TENURE_NODES: urls[0]"},
		{nodesAt("valkey://a,127.0.0.1"), "status", "TENURE_NODES: urls[1]"},
		{append(nodesAt("valkey://a"), "TENURE_NODES_FILE=x"), "status", "set one of them"},
		{[]string{"TENURE_NODES_FILE=" + os.DevNull}, "status", "no regular file"},
		{[]string{"TENURE_NODES_FILE=" + file("long", strings.Repeat("#", 64<<10+1))}, "status", "more than 65536 bytes"},
		{[]string{"TENURE_NODES_FILE=" + file("empty", "# nothing\n")}, "status", "names no nodes"},
		{append(some, "TENURE_CLOCK_SKEW=long"), "status", "TENURE_CLOCK_SKEW"},
		{append(some, "TENURE_TLS_CA="+file("ca", "nothing")), "status", "TENURE_TLS_CA: " + filepath.Join(dir, "ca") + " has no certificate"},
		{some, "status --tls-ca " + os.DevNull, "--tls-ca: " + os.DevNull + " is no regular file"},
		{some, "status --tls-cert x", "needs its key"},
		{some, "status --tls-cert " + os.DevNull + " --tls-key x", "--tls-cert: " + os.DevNull + " is no regular file"},
		{some, "status --tls-cert " + file("cert", "") + " --tls-key " + os.DevNull, "--tls-key: " + os.DevNull + " is no regular file"},
		{some, "doctor --tls-key x", "needs its certificate"},
		{some, "doctor --prefix {}", "WithPrefix"},
		{some, "doctor --timeout -1s", "not positive"},
		{some, "run x --tick= --wait 1s -- true", "--tick is empty, as where a variable of a script is not set: give it a value, or leave it out"},
		{some, "run x --once-per 1ms --wait 1s -- true", "shortest period"},
		{some, "run x --once-per= -- true", "invalid argument"},
		{some, "run x --tick x --once-per 0 -- true", "[once-per tick] were all set"},
		{some, "run x --ttl 1ms -- true", "below the minimum"},
		{some, "elect x --max-backoff 1ms -- true", "--max-backoff"},
		{some, "status --nodes=", "--nodes is empty"},
		{some, "status --node-timeout 0", "not positive"},
		{some, "pause x --why y --until=", "invalid argument"},
		{some, "pause x --why=\t", "--why is empty"},
		{some, "cancel x --why y --token 0", "--token 0 is no run's"},
		{some, "web --listen=", "--listen is empty"},
	} {
		got := call(t, of.environ, strings.Split(of.args, " ")...)
		require.Equal(t, exitUsage, got.code, "%s: %s%s", of.args, got.out, got.err)
		require.Contains(t, got.err, of.says, "%s", of.args)
		require.NotContains(t, got.err, "s3", "%s", of.args)
		require.Empty(t, got.out)
	}
}

// parsed is a program that has read variables, and flags of all commands.
func parsed(t *testing.T, environ []string, flags ...string) *program {
	t.Helper()
	p := &program{environ: environ, err: io.Discard}
	root := newRoot(p)
	require.NoError(t, root.PersistentFlags().Parse(flags))
	require.NoError(t, p.fromEnvironment(root))
	return p
}

// Which lines are logged is for the flag and its variable to say, and else for the command.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		variable, flag string
		want           slog.Level
	}{
		{"", "", slog.LevelWarn},
		{"TENURE_LOG=", "", slog.LevelWarn},
		{"TENURE_LOG=debug", "", slog.LevelDebug},
		{"TENURE_LOG=debug", "--log=ERROR", slog.LevelError},
		{"TENURE_LOG=off", "", levelOff},
		{"TENURE_LOG=off", "--log=", slog.LevelWarn},
	} {
		log := parsed(t, []string{of.variable}, strings.Fields(of.flag)...).logger(slog.LevelWarn)
		require.True(t, log.Enabled(t.Context(), of.want), "%v", of)
		require.False(t, log.Enabled(t.Context(), of.want-1), "%v", of)
	}
}

// What is advised is for the command that has failed, and names flags that it has.
func TestAdviceFitsTheCommand(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		command string
		code    int
		says    string
	}{
		{"run", exitTimedOut, "give it longer with --wait;"},
		{"status", exitTimedOut, "give it longer with --timeout;"},
		{"run", exitHeld, "another host has the lease: try again later, or wait for it with --wait"},
		{"pause", exitHeld, "somebody else did the same at the same time"},
		{"run", exitNoQuorum, "tenure doctor"},
	} {
		require.Contains(t, advise(of.command, exit(of.code, io.EOF)), of.says, "%v", of)
	}
}

// An order is a line in the log of who gives it, where that was asked for.
func TestOrdersAreLogged(t *testing.T) {
	t.Parallel()
	some := nodesAt("valkey://127.0.0.1:1")
	order := []string{"resign", "jobs", "--why", "a test", "--as", "ann"}
	got := call(t, append(some, "TENURE_LOG=warn"), order...)
	require.Equal(t, exitNoQuorum, got.code)
	require.Contains(t, got.err, `msg="admin: order" order=resign for=jobs by=ann why="a test"`)
	require.NotContains(t, call(t, some, order...).err, "msg=")
}

// By default a node has what the TTL has room for, and a longer TTL has room for more.
func TestNodeTimeout(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		flags []string
		ttl   time.Duration // of --ttl
		want  time.Duration
	}{
		{nil, 0, 500 * time.Millisecond},
		{nil, time.Second, 250 * time.Millisecond},
		{[]string{"--clock-skew=0s"}, 0, 250 * time.Millisecond},
		{[]string{"--clock-skew=0s"}, 4 * time.Second, 500 * time.Millisecond},
		{[]string{"--node-timeout=1s"}, 0, time.Second},
		{[]string{"--node-timeout=1s"}, 4 * time.Second, time.Second},
		{[]string{"--node-timeout=5s"}, 20 * time.Second, 5 * time.Second},
		{[]string{"--node-timeout=5s", "--clock-skew=10s"}, 0, 5 * time.Second},
	} {
		p := parsed(t, nil, of.flags...)
		p.connection.ttl = of.ttl
		got, err := p.nodeTimeout()
		require.NoError(t, err, "%v", of)
		require.Equal(t, of.want, got, "%v", of)
	}
}

// The nodes come from where they are said, and a flag wins over its variable.
func TestNodesComeFrom(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "nodes")
	require.NoError(t, os.WriteFile(file, []byte("# ours\nvalkey://u:p@a\nvalkey://u:p@b, valkey://u:p@c\r\n"), 0o600))
	marked := filepath.Join(t.TempDir(), "marked")
	require.NoError(t, os.WriteFile(marked, []byte("\ufeffvalkey://a\r\nvalkey://b\r\n"), 0o600))
	for _, of := range []struct {
		environ []string
		flag    string
		want    []string
	}{
		{nodesAt("valkey://a", "valkey://b"), "", []string{"valkey://a", "valkey://b"}},
		{nodesAt("valkey://a\n valkey://b\n"), "", []string{"valkey://a", "valkey://b"}},
		{[]string{"TENURE_NODES_FILE=" + file}, "", []string{"valkey://u:p@a", "valkey://u:p@b", "valkey://u:p@c"}},
		{append(nodesAt("valkey://a"), "TENURE_NODES_FILE=x"), "--nodes=valkey://ann@c,valkey://d", []string{"valkey://ann@c", "valkey://d"}},
		{[]string{"TENURE_NODES=valkey://a", "TENURE_NODES=valkey://b"}, "", []string{"valkey://b"}},
		{[]string{"TENURE_NODES=", "TENURE_NODES_FILE=" + file}, "", []string{"valkey://u:p@a", "valkey://u:p@b", "valkey://u:p@c"}},
		{[]string{"TENURE_NODES_FILE=" + marked}, "", []string{"valkey://a", "valkey://b"}},
	} {
		urls, _, err := parsed(t, of.environ, strings.Fields(of.flag)...).urls()
		require.NoError(t, err)
		require.Equal(t, of.want, urls)
	}
	p := parsed(t, []string{"TENURE_PREFIX=of the variable", "TENURE_CLOCK_SKEW=3s"}, "--prefix", "of the flag")
	require.Equal(t, "of the flag", p.connection.prefix)
	require.Equal(t, "3s", p.connection.clockSkew.String())
}

// Every command has a line, an example and help, and every exit code is on the page.
func TestHelp(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/steering.md")
	require.NoError(t, err)
	source, err := os.ReadFile("exit.go")
	require.NoError(t, err)
	for l := range strings.Lines(string(source)) {
		if words := strings.Fields(l); len(words) > 2 && strings.HasPrefix(words[0], "exit") && words[1] == "=" {
			require.Contains(t, string(page), "| "+words[2]+" |", "%s", words[0])
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			require.NotEmpty(t, sub.Short)
			require.NotContains(t, sub.Short, ". ")
			require.NotEmpty(t, sub.Example, sub.Name())
			require.Contains(t, string(page), "tenure "+sub.Name(), "docs/steering.md")
			require.LessOrEqual(t, longest(sub.Long), 100, sub.Name())
			got := call(t, nil, sub.Name(), "--help")
			require.Equal(t, exitOK, got.code)
			require.Contains(t, got.out, "Examples:")
			walk(sub)
		}
	}
	walk(newRoot(&program{}))
	require.Contains(t, call(t, nil, "completion", "bash").out, "tenure")
	require.Contains(t, call(t, nil).out, "Give orders:")
	require.Contains(t, call(t, nil, "version").out, "tenure ")
	require.Contains(t, call(t, nil, "version", "-o", "json").out, `"platform"`)
}

// Each field of the JSON is on the page, and each flag of the page is one of a command.
func TestPageHasFieldsAndFlags(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/steering.md")
	require.NoError(t, err)
	var files []string
	for _, in := range []string{"*.go", "../../internal/view/*.go", "../../web/*.go"} {
		found, err := filepath.Glob(in)
		require.NoError(t, err)
		files = append(files, found...)
	}
	fields := 0
	for _, file := range append(files, "internal/doctor/finding.go") {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, tag := range regexp.MustCompile("`json:\"([a-z_]+)").FindAllStringSubmatch(string(source), -1) {
			fields++
			require.True(t, strings.Contains(string(page), "`"+tag[1]+"`"), "%s: %s is not on the page", file, tag[1])
		}
	}
	require.Greater(t, fields, 100)
	flags := make(map[string]bool)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.InheritedFlags() // which adds those of all commands
		c.Flags().VisitAll(func(f *pflag.Flag) { flags["--"+f.Name] = true })
		for _, sub := range c.Commands() {
			sub.InitDefaultHelpFlag()
			walk(sub)
		}
	}
	walk(newRoot(&program{}))
	for _, named := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(string(page), -1) {
		require.True(t, flags[named], named)
	}
}

// severities are what docs/steering.md says of each code that doctor finds.
func severities(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/steering.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| code | severity | found | do |\n| --- | --- | --- | --- |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	all := make(map[string][]string)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		require.Len(t, cells, 4, "%s", line)
		is := strings.Split(cells[1], ", ")
		require.Subset(t, []string{"fault", "warning", "note"}, is, "%s", line)
		for _, code := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[0], -1) {
			require.NotContains(t, all, code[1], "it is there twice")
			all[code[1]] = is
		}
	}
	return all
}

func longest(text string) (n int) {
	for l := range strings.Lines(text) {
		n = max(n, len(strings.TrimSpace(l)))
	}
	return n
}

// Each reason of a skipped tick has words. A run that was cut short is no skipped tick.
func TestSkipReasonsHaveWords(t *testing.T) {
	t.Parallel()
	reasons := []scheduler.Reason{
		scheduler.SkipHeld, scheduler.SkipDone, scheduler.SkipOverlap, scheduler.SkipNotLeader, scheduler.SkipQuarantined, scheduler.SkipNoQuorum, scheduler.SkipTimeout,
		scheduler.SkipPaused, scheduler.SkipRefused, scheduler.SkipAhead, scheduler.SkipSplit, scheduler.SkipSuperseded, scheduler.SkipMissed, scheduler.SkipLimit, scheduler.SkipStopped, scheduler.SkipOther,
	}
	require.Len(t, skipReasons, len(reasons))
	for _, r := range reasons {
		require.NotEmpty(t, skipReasons[string(r)], r)
	}
	require.Equal(t, "of tomorrow (ann)", whySkipped("of tomorrow", "ann"))
}

// What a terminal might obey is escaped, on one line.
func TestText(t *testing.T) {
	t.Parallel()
	require.Equal(t, "größe␊␛[31m⟨U+202E⟩", line("größe\n\x1b[31m\u202e"))
	require.Equal(t, `"a\"b"`, quoted(`a"b`))
	require.Equal(t, strings.Repeat("a, ", mostNamed)+"and 2 more: see tenure jobs", few(strings.Fields(strings.Repeat("a ", mostNamed+2))))
	w := &page{}
	w.table([]string{"A", "B"}, [][]string{{"größe", "x"}, {"", strings.Repeat("y", 200)}})
	require.Equal(t, "A      B\ngröße  x\n-      "+strings.Repeat("y", widestLine-1)+"…\n", w.String())
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return v
}

// Which number a host computes, by its clock and its zone.
func TestTickOf(t *testing.T) {
	for _, c := range []struct{ tick, now, want string }{
		{"0 * * * *", "2026-03-01T12:59:59Z", "2026-03-01T12:00:00Z"},
		{"*/5 * * * *", "2026-03-01T12:03:00Z", "2026-03-01T12:00:00Z"},
		{"30 2 1 1 *", "2026-03-01T12:03:00Z", "2026-01-01T02:30:00Z"},
		{"30 2 29 2 *", "2027-03-01T12:03:00Z", "2024-02-29T02:30:00Z"},
		{"@daily", "2026-03-01T12:03:00Z", "2026-03-01T00:00:00Z"},
		// The days on which clocks are changed, where days of UTC would have two runs.
		{"TZ=Europe/Berlin 30 1 * * *", "2026-03-29T00:30:00Z", "2026-03-29T00:30:00Z"},
		// What the clock shows twice is due the first time, as with a Scheduler.
		{"TZ=Europe/Berlin 30 2 * * *", "2026-10-25T01:31:00Z", "2026-10-25T00:30:00Z"},
		{"2026-01-02T03:04:05.5Z", "2026-03-01T12:03:00Z", "2026-01-02T03:04:05.5Z"},
	} {
		got, err := tickOf(c.tick, at(t, c.now))
		require.NoError(t, err, "%+v", c)
		require.Equal(t, at(t, c.want).UnixMilli(), got.At.UnixMilli(), "%+v gives %v", c, got.At)
		require.GreaterOrEqual(t, got.Keep, minKeep)
	}
	got, err := tickOf("0 0 1 * *", at(t, "2026-03-01T12:03:00Z"))
	require.NoError(t, err)
	require.Equal(t, 62*24*time.Hour, got.Keep, "twice as long as to the next one")
	for _, wrong := range []string{"", "often", "* * * *", "* * * * * *", "61 * * * *", "@every 1h", "TZ=0", "CRON_TZ=UTC", "TZ=Nowhere 0 0 * * *", "0 0 30 2 *", "1960-01-01T00:00:00Z"} {
		_, err := tickOf(wrong, at(t, "2026-03-01T12:03:00Z"))
		require.Error(t, err, wrong)
	}
}

func TestTickOfPeriod(t *testing.T) {
	for _, c := range []struct {
		period    time.Duration
		now, want string
	}{
		{time.Hour, "2026-03-01T12:59:59.999Z", "2026-03-01T12:00:00Z"},
		{24 * time.Hour, "2026-03-01T23:59:59+02:00", "2026-03-01T00:00:00Z"},
		{7 * time.Second, "1970-01-01T00:00:13Z", "1970-01-01T00:00:07Z"},
	} {
		got, err := tickOfPeriod(c.period, at(t, c.now))
		require.NoError(t, err)
		require.Equal(t, at(t, c.want).UnixMilli(), got.At.UnixMilli(), "%+v", c)
	}
	for _, wrong := range []time.Duration{-1, 0, time.Millisecond, time.Second + 1, 400 * 24 * time.Hour} {
		_, err := tickOfPeriod(wrong, time.Now())
		require.Error(t, err, wrong)
	}
	_, err := tickOfPeriod(time.Hour, time.Unix(0, 0))
	require.Error(t, err, "a clock that was never set")
}

// In JSON, too, a terminal gets no character that it might obey, and a program reads what there
// was.
func TestJSONIsEscaped(t *testing.T) {
	t.Parallel()
	const text = "größe 日本 \u009b31m \u202e \x7f \u200b \U000e0041 \u2028 \x1b \n \\ \" <&> \ufeff \U0001f600"
	var out bytes.Buffer
	p := &program{out: &out, output: asJSON}
	require.NoError(t, p.show(holderDocument{Key: text, Payload: "\xff"}))
	for _, r := range out.String() {
		require.True(t, r == '\n' || unicode.IsPrint(r), "%U", r)
	}
	require.Contains(t, out.String(), `größe 日本 \u009b31m \u202e \u007f \u200b \udb40\udc41 \u2028`)
	require.Contains(t, out.String(), `<&>`)
	require.Contains(t, out.String(), `"identity": null`)
	var d holderDocument
	require.NoError(t, json.Unmarshal(out.Bytes(), &d))
	require.Equal(t, text, d.Key)
	require.Equal(t, "\ufffd", d.Payload, "what is no UTF-8 cannot be told in JSON")
}

// full is a stream that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// An output that cannot be written has a code of its own, unless there is worse to tell.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		args string
		code int
	}{{"version", exitUnwritten}, {"version -o json", exitUnwritten}, {"nodes", exitNoQuorum}, {"doctor", exitUnwritten}, {"help", exitUnwritten}, {"completion bash", exitUnwritten}} {
		var said strings.Builder
		p := &program{in: strings.NewReader(""), out: full{}, err: &said, environ: nodesAt("valkey://127.0.0.1:1")}
		require.Equal(t, of.code, p.run(t.Context(), strings.Fields(of.args)), "%s: %s", of.args, said.String())
		require.Contains(t, said.String(), "the output cannot be written: no space left on device")
		require.NotContains(t, said.String(), `\n`, "errors are told on one line")
	}
}

// A --timeout that has passed is told as that, also where too few nodes have answered by then.
func TestTimeoutThatHasPassed(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"status", "nodes", "jobs", "orders", "runs --failed"} {
		got := call(t, nodesAt("valkey://127.0.0.1:1"), strings.Fields(command+" --timeout 1ns")...)
		require.Equal(t, exitTimedOut, got.code, "%s: %s", command, got.err)
		require.NotContains(t, got.out, "No such", "it is not known what there is")
		require.Contains(t, got.err, "--timeout 1ns has passed")
		require.Contains(t, got.err, "give it longer with --timeout")
		require.NotContains(t, got.err, `\n`)
	}
	p := &program{environ: nodesAt("valkey://127.0.0.1:1")}
	root := newRoot(p)
	root.AddCommand(p.asks(&cobra.Command{Use: "part"}, func(ctx context.Context, _ *cluster, _ []string) (document, error) {
		<-ctx.Done() // as jobs are read until then
		return nil, nil
	}))
	root.SetArgs([]string{"part", "--timeout", "1ms"})
	require.Equal(t, exitTimedOut, exitCode(root.ExecuteContext(t.Context())), "no error, and not all that there is")
}

// A signal that comes between the grant of the lease and the start of the command leaves no
// directory behind.
func TestCommandThatIsNotBegunLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, r := newRelay(t.Context())
	defer r.stop()
	c := &child{ttl: time.Second, grace: 200 * time.Millisecond, path: "/bin/true", args: []string{"true"}, p: &program{}, relay: r}
	r.take(syscall.SIGTERM)
	_, err := c.carryOut(t.Context(), "key", 1, time.Now)
	require.ErrorIs(t, err, errNotBegun)
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}
