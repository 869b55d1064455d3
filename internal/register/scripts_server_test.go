package register

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// server is one real server, which is asked to carry out scripts as a Quorum does it.
type server struct {
	t      *testing.T
	client valkey.Client
	bridge bridge.Quorum
	id     string // its run_id
}

const key = "tenure:{key}:register"

func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	fleet := valkeytest.Start(t, 1, valkeytest.WithAge(time.Hour), valkeytest.WithArgs(args...))
	q, err := redlock.Open(fleet.URLs(), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	option, err := valkey.ParseURL(fleet.URLs()[0])
	require.NoError(t, err)
	option.DisableCache, option.ForceSingleClient = true, true
	client, err := valkey.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s := &server{t: t, client: client, bridge: bridge.Of(q)}
	info, err := s.do("INFO", "server").ToString()
	require.NoError(t, err)
	_, id, _ := strings.Cut(info, "run_id:")
	s.id = id[:40]
	return s
}

func (s *server) do(words ...string) valkey.ValkeyResult {
	return s.client.Do(s.t.Context(), s.client.B().Arbitrary(words...).Build())
}

// ask has the server carry out a script, and returns what it answers behind its run_id.
func (s *server) ask(script *bridge.Script, reads bool, keys []string, args ...string) ([]string, error) {
	s.t.Helper()
	answers, err := s.bridge.Ask(s.t.Context(), &bridge.Question{
		Op: opRead, Key: "key", Reads: reads,
		Call:    func(int) *bridge.Call { return &bridge.Call{Script: script, Keys: keys, Args: args} },
		Decided: func([]*bridge.Answer) bool { return false },
	})
	require.NoError(s.t, err)
	a := answers()[0]
	if a.Err != nil {
		return nil, a.Err
	}
	require.Equal(s.t, s.id, a.Texts[0])
	return a.Texts[1:], nil
}

func (s *server) put(text string) {
	s.t.Helper()
	require.NoError(s.t, s.do("SET", key, strings.ReplaceAll(text, "ME", s.id), "PX", "50000").Error())
}

// has is what the server has, and for how long.
func (s *server) has() (text string, left int64) {
	s.t.Helper()
	text, _ = s.do("GET", key).ToString()
	left, err := s.do("PTTL", key).AsInt64()
	require.NoError(s.t, err)
	return strings.ReplaceAll(text, s.id, "ME"), left
}

// What each script answers to each text, and what it makes of it.
func TestScripts(t *testing.T) {
	s := startServer(t)
	other := strings.Repeat("b", 40)
	ahead := decimal(uint64(time.Now().Add(25 * time.Hour).UnixMicro()))
	long := strings.Repeat("x", MaxValue)
	for _, test := range []struct {
		name   string
		script *bridge.Script
		text   string
		args   []string // without the lifetime
		says   string   // LEFT stands for what is left of its life
		text2  string
		left   int64 // at least; 0 for as it was
	}{
		{"nothing", readScript, "", []string{"0"}, "u 0 0 0 0 ", "", 0},
		{"nothing, with a ballot", readScript, "", []string{"5"}, "u 0 0 0 0 ", "", 0},
		{"known and empty", readScript, "1 ME 0 0 0 ", []string{"0"}, "k 0 0 0 LEFT ", "1 ME 0 0 0 ", 0},
		{"plainly", readScript, "1 ME 5 4 2 a  b ", []string{"0"}, "k 5 4 2 LEFT a  b ", "1 ME 5 4 2 a  b ", 0},
		{"promised", readScript, "1 ME 5 4 2 a\n\x00b", []string{"6"}, "k 5 4 2 LEFT a\n\x00b", "1 ME 6 4 2 a\n\x00b", 90000},
		{"promised already", readScript, "1 ME 5 4 2 v", []string{"5"}, "r 5", "1 ME 5 4 2 v", 0},
		{"promised to a later one", readScript, "1 ME 9007199254740991 4 2 v", []string{"6"}, "u 0 0 0 0 ", "1 ME 9007199254740991 4 2 v", 0},
		{"another process", readScript, "1 " + other + " 5 4 2 v", []string{"6"}, "u 5 4 2 LEFT v", "1 " + other + " 5 4 2 v", 0},
		{"no text", readScript, "1 ME 5 4 v", []string{"6"}, "u 0 0 0 0 ", "1 ME 5 4 v", 0},
		{"leads", readScript, "1 ME " + ahead + " 4 2 v", []string{"6"}, "u 0 0 0 0 ", "1 ME " + ahead + " 4 2 v", 0},
		{"the longest", readScript, "1 ME 5 4 2 " + long, []string{"0"}, "k 5 4 2 LEFT " + long, "1 ME 5 4 2 " + long, 0},
		{"longer", readScript, "1 ME 5 4 2 x" + long, []string{"0"}, "u 0 0 0 0 ", "1 ME 5 4 2 x" + long, 0},
		{"version", readScript, "2 ME 5 4 2 v", []string{"6"}, "v 2", "2 ME 5 4 2 v", 0},

		{"written", writeScript, "1 ME 5 4 2 v", []string{"5", "1", "w"}, "t", "1 ME 5 5 1 w", 90000},
		{"written by a later one", writeScript, "1 ME 5 4 2 v", []string{"6", "1", "w"}, "t", "1 ME 6 6 1 w", 90000},
		{"written below the promise", writeScript, "1 ME 5 4 2 v", []string{"4", "3", "w"}, "r 5", "1 ME 5 4 2 v", 0},
		{"written below the ballot", writeScript, "1 ME 3 5 2 v", []string{"4", "3", "w"}, "r 3", "1 ME 3 5 2 v", 0},
		{"the next step", writeScript, "1 ME 5 5 2 v", []string{"5", "3", ""}, "t", "1 ME 5 5 3 ", 90000},
		{"the same step", writeScript, "1 ME 5 5 2 v", []string{"5", "2", "v"}, "t", "1 ME 5 5 2 v", 0},
		{"the step before", writeScript, "1 ME 5 5 2 v", []string{"5", "1", "w"}, "r 5", "1 ME 5 5 2 v", 0},
		{"not known", writeScript, "", []string{"5", "1", "w"}, "u", "", 0},
		{"restored", writeScript, "", []string{"5", "1", "w", "ME"}, "t", "1 ME 5 5 1 w", 90000},
		{"restored over an earlier process's", writeScript, "1 " + other + " 9 9 9 v", []string{"5", "1", "w", "ME"}, "t", "1 ME 5 5 1 w", 90000},
		{"restored to another process", writeScript, "", []string{"5", "1", "w", other}, "u", "", 0},
		{"restored though known", writeScript, "1 ME 6 4 2 v", []string{"5", "1", "w", "ME"}, "r 6", "1 ME 6 4 2 v", 0},
		{"write that leads", writeScript, "1 ME 5 4 2 v", []string{ahead, "1", "w"}, "u", "1 ME 5 4 2 v", 0},
		{"write over another version", writeScript, "3 v", []string{"5", "1", "w", "ME"}, "v 3", "3 v", 0},

		{"restore", restoreScript, "", []string{"ME", "6", "5", "2", " v"}, "t", "1 ME 6 5 2  v", 90000},
		{"restore as empty", restoreScript, "hello", []string{"ME", "0", "0", "0", ""}, "t", "1 ME 0 0 0 ", 90000},
		{"restore what is known", restoreScript, "1 ME 0 0 0 ", []string{"ME", "6", "5", "2", "v"}, "k", "1 ME 0 0 0 ", 0},
		{"restore another process", restoreScript, "", []string{other, "6", "5", "2", "v"}, "u", "", 0},
		{"restore what leads", restoreScript, "", []string{"ME", ahead, "5", "2", "v"}, "u", "", 0},
		{"restore over another version", restoreScript, "10 v", []string{"ME", "6", "5", "2", "v"}, "v 10", "10 v", 0},
	} {
		require.NoError(t, s.do("DEL", key).Error())
		if test.text != "" {
			s.put(test.text)
		}
		life := "90000"
		args := append([]string{}, test.args...)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "ME", s.id)
		}
		switch {
		case test.script != writeScript:
			args = append(args, life)
		case len(args) == 3:
			args = append(args, life, "")
		default:
			args = append(args[:3], life, args[3])
		}
		says, err := s.ask(test.script, false, []string{key}, args...)
		require.NoError(t, err, test.name)
		if test.script == readScript {
			var micros int64
			_, err := fmt.Sscan(says[0], &micros)
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), time.UnixMicro(micros), time.Minute)
			says = says[1:]
		}
		require.Len(t, says, 1, test.name)
		if strings.Contains(test.says, "LEFT") {
			v := parseView("", says[0])
			require.InDelta(t, 50*time.Second, v.left, float64(20*time.Second), test.name)
			test.says = strings.ReplaceAll(test.says, "LEFT", decimal(uint64(v.left/time.Millisecond)))
		}
		require.Equal(t, test.says, says[0], test.name)
		text, left := s.has()
		require.Equal(t, test.text2, text, test.name)
		if test.left > 0 {
			require.Greater(t, left, int64(60000), test.name)
		} else if text != "" {
			require.LessOrEqual(t, left, int64(50000), test.name)
		}
	}
}

// A server that is full keeps what it has, and says so.
func TestScriptsOfAFullServer(t *testing.T) {
	s := startServer(t)
	s.put("1 ME 5 4 2 v")
	require.NoError(t, s.do("CONFIG", "SET", "maxmemory", "1").Error())
	for script, args := range map[*bridge.Script][]string{
		readScript: {"6", "90000"}, writeScript: {"6", "1", "w", "90000", ""},
	} {
		_, err := s.ask(script, false, []string{key}, args...)
		require.ErrorContains(t, err, "oom")
		text, _ := s.has()
		require.Equal(t, "1 ME 5 4 2 v", text)
	}
	require.NoError(t, s.do("CONFIG", "SET", "maxmemory", "0").Error())
}

// A read with a ballot of 0 writes nothing: a server takes it for one that only reads.
func TestPlainReadIsReadOnly(t *testing.T) {
	s := startServer(t)
	s.put("1 ME 5 4 2 v")
	says, err := s.ask(readScript, true, []string{key}, "0", "90000")
	require.NoError(t, err)
	require.Regexp(t, "^k 5 4 2 ", says[1])
	_, err = s.ask(readScript, true, []string{key}, "6", "90000")
	require.ErrorContains(t, err, "read-only script")
}
