package redlock

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/resp"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Everything that comes from outside is parsed without a panic and into bounds, or refused. `make
// fuzz` searches further than the seeds, which every test run tries.

// A URL is taken or refused, and an error never repeats a password.
func FuzzNodeURL(f *testing.F) {
	for _, seed := range []string{
		"valkey://127.0.0.1:6379", "valkeys://user:s3cret@host/0", "redis://:s3cret@[::1]:6379/15", "rediss://h?client_name=x",
		"valkey://host:6379/not-a-db", "valkey://user:s3c ret@host", "valkey://user:s3cret@host:port", "unix:///run/valkey.sock?db=3",
		"redis://h:26379?master_set=m&addr=h2:1", "http://host", "", "://", "valkey://%zz:s3cret@h", "valkey://h?dial_timeout=-1s",
		"valkey://h?protocol=9&max_retries=s3cret", "valkey://", "VALKEY://HOST",
	} {
		f.Add(seed)
	}
	c, err := newConfig(nil)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, url string) {
		o, err := c.nodeOption(url)
		if err != nil {
			if _, rest, ok := strings.Cut(url, ":"); ok {
				if secret, _, ok := strings.Cut(rest, "@"); ok && len(secret) > 8 {
					require.NotContains(t, err.Error(), secret)
				}
			}
			return
		}
		require.NotEmpty(t, o.InitAddress)
		require.True(t, o.DisableRetry)
		require.True(t, o.DisableCache)
		require.Equal(t, -1, o.PipelineMultiplex)
		require.Zero(t, o.ConnLifetime)
		require.Positive(t, o.Dialer.Timeout)
		require.LessOrEqual(t, o.Dialer.Timeout, c.lease.ttl/2)
	})
}

// An identity and a payload come back out of every owner value that they went into, whatever
// separators they contain. Any other text gives some identity that is part of it, and no payload
// that does not stand there as an attempt writes it.
func FuzzOwnerValue(f *testing.F) {
	for _, seed := range []string{"host-1-abc", "a/b/c", "/", "", "squatter/AAAAAAAAAAAAAAAAAAAAAA", "\x00", "é/…", strings.Repeat("x", 300)} {
		f.Add(seed, "10.0.0.1:8080")
		f.Add("web-1", seed)
		f.Add("squatter/AAAAAAAAAAAAAAAAAAAAAA?"+seed, "\x00/?% \n\xff")
	}
	f.Fuzz(func(t *testing.T, text, payload string) {
		require.Equal(t, text, wire.ParseOwner(text).Identity+text[len(wire.ParseOwner(text).Identity):], "a prefix of the owner value")
		require.LessOrEqual(t, len(wire.ParseOwner(text).Random), 22)
		found := wire.ParseOwner(text).Payload
		require.LessOrEqual(t, len(found), MaxPayloadLength)
		require.True(t, found == "" || strings.HasSuffix(text, "?"+url.QueryEscape(found)))
		if checkIdentity(text) != nil || len(payload) > MaxPayloadLength {
			return
		}
		owner := wire.NewOwner(text, payload)
		require.Equal(t, text, wire.ParseOwner(owner).Identity)
		require.Equal(t, payload, wire.ParseOwner(owner).Payload)
		require.NotContains(t, strings.TrimPrefix(owner, text), " ", "fields of messages and records have blanks between them")
		require.NotEqual(t, owner, wire.NewOwner(text, payload))
	})
}

func FuzzKey(f *testing.F) {
	for _, seed := range []string{"key", "a/b", "{x}", "}x", "x}y{z", "", strings.Repeat("k", MaxKeyLength+1), "\x00\r\n"} {
		f.Add(seed)
	}
	c, err := newConfig(nil)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, key string) {
		k, err := c.keys(key)
		if err != nil {
			return
		}
		// The slot is that of the text between the first { and the first } after it, and must not
		// be empty: of an empty one the whole name counts (https://valkey.io/topics/cluster-spec/).
		_, rest, _ := strings.Cut(k.Lock, "{")
		tag, _, ok := strings.Cut(rest, "}")
		require.True(t, ok)
		require.NotEmpty(t, tag)
		for _, name := range []string{k.Lock, k.Lock + ":wait"} {
			require.Contains(t, name, "tenure:{"+tag+"}")
		}
	})
}

func FuzzInfo(f *testing.F) {
	const id = "0123456789abcdef0123456789abcdef01234567"
	for _, seed := range []string{
		"# Server\r\nredis_version:7.2.4\r\nrun_id:" + id + "\r\nuptime_in_seconds:9\r\nserver_time_usec:1795748159874704\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
		"run_id:" + id + "\nuptime_in_seconds:-1", "run_id:" + id + "\nuptime_in_seconds:9223372036854775807",
		"run_id:" + id[1:] + "'\nuptime_in_seconds:1", "", ":", "role:slave\nmaster_host:h", "redis_version:..\nrun_id:" + id + "\nuptime_in_seconds:1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		info, err := wire.ParseInfo(text)
		if err != nil {
			return
		}
		require.Regexp(t, "^[0-9a-f]{40}$", info.RunID, "it becomes part of a script")
		require.GreaterOrEqual(t, info.Uptime, time.Duration(0))
		require.LessOrEqual(t, info.Uptime, time.Duration(100*366*24)*time.Hour)
		if why := node.Judge(info, false); why == nil {
			require.Equal(t, "master", info.Role)
			require.Zero(t, max(info.Replicas, 0))
		} else {
			require.NotEmpty(t, why.Error())
		}
	})
}

// An answer to acquisitions and releases has one for each of its requests, of its kind, or it is
// none.
func TestOddAnswersToPairs(t *testing.T) {
	pair := []*wire.Call{{Op: wire.Acquire, Lock: "17 x"}, {Op: wire.Release}}
	server := startReplier(t)
	for _, test := range []struct {
		shape, values string
		understood    bool
	}{
		{"b", "1780000000 5 1 1", true},
		{"bbi", "1780000000 5 1 0|x|9000", true},
		{"bbi", "1780000000 5 0 0|x|9000", true},
		{"b", "1780000000 5 1 0", false},
		{"bbb", "1780000000 5 1 0|x|y", false},
		{"bbi", "1780000000 5 1 1|x|9000", false},
		{"bbibi", "1780000000 5 1 0|x|9000|x|9000", false},
		{"bbi", "1780000000 5 1 4|x|9000", false},
		{"b", "1780000000 5 1 3 1780000000000001", true},
		{"b", "1780000000 5 1 3", false},
		{"b", "1780000000 5 1 1 17", false},
		{"b", "1780000000 5 1 3 17 18", false},
		{"b", "1780000000 5 1 3 9007199254740992", false},
		{"b", "1780000000 5 3 1 17", false},
		{"b", "1780000000 5 11 ", false},
		{"b", "1780000000 5  11", false},
		{"n", "", false},
		{"b", "1780000000 x 1 1", false},
		{"b", "-1780000000 5 1 1", false},
		{"b", "1780000000 5 1", false},
	} {
		answers := wire.Decode(pair, server.ask(t, encode(test.shape, test.values)), nil)
		require.Len(t, answers, 2)
		for _, a := range answers {
			require.Equal(t, test.understood, a.Err == nil, "%+v: %v", test, a.Err)
			require.Equal(t, !test.understood, a.Alone, "%+v", test)
		}
	}
	for _, a := range wire.Decode(pair, server.ask(t, encode("b", "1780000000 5 2 2")), nil) {
		require.NoError(t, a.Err)
		require.True(t, a.Alone, "the server has left it")
	}
}

// A reply of any shape is understood or refused. shape has a letter for each element: b(ulk),
// s(imple), i(nteger), n(il), e(rror); more than one letter make an array.
func FuzzReply(f *testing.F) {
	ops := []wire.Op{wire.Acquire, wire.Agree, wire.Extend, wire.Release, wire.Observe, wire.Info, wire.Time}
	for op := range ops {
		for _, seed := range [][2]string{
			{"b", "1780000000 5 1780000000000001"}, {"b", "9223372036854775807 999999 18446744073709551615"}, {"b", "1 1 1.78e+15"},
			{"bibb", "host/AAAAAAAAAAAAAAAAAAAAAA|9000|1780000000|5"}, {"bibb", "x|-1|-1|-1"}, {"bib", "host|9000|17"}, {"bi", "a|1"},
			{"bib", "1780000000000001 host/AAAAAAAAAAAAAAAAAAAAAA|9000|1 p 5 1 0 4 0 1 4 1 a b   host/AAAAAAAAAAAAAAAAAAAAAA"}, {"bin", "1 host|9000"},
			{"bb", "1780000000|5"}, {"bb", "99999999999999999999|1000000"}, {"i", "1"}, {"i", "3"}, {"i", "-1"},
			{"bib", "host|9223372036854775807|9007199254740992"}, {"b", "1780000000 5 9007199254740991"}, {"b", "1780000000 5 9007199254740992"}, {"b", "1780000000 5 1780086400000006"}, {"i", "9223372036854775807"},
			{"n", ""}, {"e", "ERR x"}, {"s", "OK"}, {"", ""}, {"nnnn", "|||"},
			{"b", "1780000000 5 1 1"}, {"bbi", "1780000000 5 1 0|x|9000"}, {"bb", "1780000000 5 0 0|OOM"}, {"b", "1780000000 5 2 2"}, {"b", "1780000000 5 1 3 17"}, {"b", "10"}, {"b", "2"}, {"b", "4"},
		} {
			f.Add(uint8(op), seed[0], seed[1])
		}
	}
	server := startReplier(f)
	f.Fuzz(func(t *testing.T, op uint8, shape, values string) {
		if len(shape) > 8 || len(values) > 4096 {
			t.Skip()
		}
		result := server.ask(t, encode(shape, values))
		require.Len(t, wire.Decode([]*wire.Call{{Op: wire.Acquire}, {Op: wire.Release}}, result, nil), 2)
		call := &wire.Call{Op: ops[int(op)%len(ops)], Keys: &wire.Keys{Lock: "k", Fences: "f", Slot: "7"}, Lock: "10 x"}
		rep := wire.Decode([]*wire.Call{call}, result, nil)[0]
		err := rep.Err
		if err != nil {
			require.False(t, wire.IsTimeout(err) || wire.IsBroken(err), "an answer, however odd, is no broken connection: %v", err)
			require.NotEmpty(t, (&NodeError{Node: "n:1", Op: Op(call.Op.String()), Err: wire.Diagnose(err)}).Error())
			return
		}
		require.Contains(t, []wire.Verdict{wire.OK, wire.Refused}, rep.Verdict)
		require.GreaterOrEqual(t, rep.More().PTTL, time.Duration(0))
		require.GreaterOrEqual(t, rep.Server, time.Duration(0))
		require.LessOrEqual(t, rep.Extended, wire.Gone)
		require.LessOrEqual(t, rep.Token, uint64(wire.MaxToken))
		if call.Op == wire.Acquire {
			require.True(t, rep.Server > 0 || strings.Contains(values, "0") || strings.Contains(shape, "i"), "the server's clock is part of the answer")
		}
	})
}

// encode writes a reply as RESP.
func encode(shape, values string) []byte {
	var all []string
	parts := strings.Split(values, "|")
	for i, kind := range []byte(shape) {
		var value string
		if i < len(parts) {
			value = parts[i]
		}
		line := strings.NewReplacer("\r", "?", "\n", "?").Replace(value)
		switch kind {
		case 's':
			all = append(all, proto.Inline(line))
		case 'i':
			n, _ := strconv.Atoi(value)
			all = append(all, proto.Int(n))
		case 'n':
			all = append(all, proto.Nil)
		case 'e':
			all = append(all, proto.Error("ERR "+line))
		default:
			all = append(all, proto.String(value))
		}
	}
	if len(all) == 1 {
		return []byte(all[0])
	}
	return []byte(proto.Array(all...))
}

// replier is a server that answers every command but a client's handshake with what it is told to.
type replier struct {
	client  valkey.Client
	replies chan []byte
}

func startReplier(tb testing.TB) *replier {
	s := &replier{replies: make(chan []byte, 1)}
	client, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{"replier:1"}, ForceSingleClient: true, DisableCache: true, DisableRetry: true, AlwaysRESP2: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			near, far := net.Pipe()
			go s.serve(far)
			return near, nil
		},
	})
	require.NoError(tb, err)
	tb.Cleanup(client.Close)
	s.client = client
	return s
}

func (s *replier) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		name, err := readCommand(in)
		if err != nil {
			return
		}
		answer := []byte("+OK\r\n")
		if name == "FUZZ" {
			answer = <-s.replies
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

func (s *replier) ask(t *testing.T, answer []byte) valkey.ValkeyResult {
	s.replies <- answer
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return s.client.Do(ctx, s.client.B().Arbitrary("FUZZ").Build())
}

// What comes through the guard a client can read without a panic, and without memory that nobody
// has sent. mode chooses how the client is used: 0 asks and waits, 1 asks with others at the same
// time, 2 subscribes. at is how many of the client's commands are answered in order before the
// bytes come, in pieces.
func FuzzGuard(f *testing.F) {
	for i, says := range []string{
		"$-2\r\n", "*-2\r\n", "%-1\r\n", "$9000000000000000000\r\n", "*100000000000\r\n", "%4611686018427387904\r\n", "*99999999\r\n",
		"$?\r\n;-2\r\n", "*?\r\n.\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n", "+OK\r\n+OK\r\n", "$-1\r\n$-1\r\n", "-ERR max number of clients reached\r\n",
		">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:1\r\n",
		"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n", "+QUEUED\r\n", "-LOADING\r\n+PONG\r\n", "-NOPERM no\r\n-NOPERM no\r\n",
		"*0\r\n", "*1\r\n+a\r\n", "_\r\n",
		"*1\r\n*1\r\n*1\r\n:1\r\n", ">2\r\n:1\r\n*0\r\n", "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "#t\r\n,1\r\n(1\r\n=5\r\ntxt:a\r\n", "\x15\x03\x03", "HTTP/1.1 400\r\n", "___\r\n", "#tt\r\n",
	} {
		for mode := range uint8(3) {
			f.Add(mode, uint8(i)%4, uint8(3), []byte(says))
			f.Add(mode, 1+uint8(i)%2, uint8(i), []byte(says))
		}
	}
	f.Fuzz(func(t *testing.T, mode, at, piece uint8, says []byte) {
		if len(says) > 4096 {
			t.Skip()
		}
		var work sync.WaitGroup
		defer work.Wait()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var connections atomic.Int64
		option := valkey.ClientOption{
			InitAddress: []string{"liar:1"}, DisableCache: true, DisableRetry: true, ClientSetInfo: valkey.DisableClientSetInfo,
			ForceSingleClient: true, PipelineMultiplex: -1,
			ReadBufferEachConn: 1 << 12, WriteBufferEachConn: 1 << 12, RingScaleEachConn: 5, ConnWriteTimeout: time.Second,
			DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
				if connections.Add(1) > 8 {
					return nil, io.EOF
				}
				near, far := net.Pipe()
				work.Go(func() { lieAfter(far, int(at%8), int(piece)+1, says) })
				return near, nil
			},
		}
		if dial := option.DialCtxFn; mode&4 != 0 {
			option.DialCtxFn = nil
			option.DialFn = func(addr string, dialer *net.Dialer, c *tls.Config) (net.Conn, error) {
				return dial(t.Context(), addr, dialer, c)
			}
		}
		resp.GuardClient(&option)
		client, err := node.NewClient(t.Context(), option, nil)
		if client != nil {
			useClient(client, mode%3)
			client.Close()
		}
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(connections.Load()+1)*16<<20, "%v", err)
	})
}

// useClient does with a client what a Quorum does with it.
func useClient(client valkey.Client, mode uint8) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	background, stop := context.WithCancel(context.Background()) // without a deadline, valkey-go reads in a goroutine of its own
	defer stop()
	switch mode {
	case 1:
		for range 2 {
			_ = client.DoMulti(background, client.B().Get().Key("a").Build(), client.B().Get().Key("b").Build())
		}
	case 2:
		_ = client.Receive(ctx, client.B().Subscribe().Channel("a").Build(), func(valkey.PubSubMessage) {})
	default:
		for range 3 {
			_, _ = client.Do(ctx, client.B().Get().Key("a").Build()).ToString()
		}
	}
}

// lieAfter answers commands in order, as many as it is told, then says something in pieces, and
// ends the connection when the client has sent another command.
func lieAfter(conn net.Conn, after, piece int, says []byte) {
	defer conn.Close()
	var heard sync.WaitGroup
	names := make(chan string)
	heard.Go(func() {
		defer close(names)
		readCommands(conn, names)
	})
	defer heard.Wait()
	defer conn.Close()
	defer func() {
		go func() {
			for range names {
			}
		}()
	}()
	for range after {
		name, ok := <-names
		if !ok {
			return
		}
		if _, err := conn.Write([]byte(honest(name))); err != nil {
			return
		}
	}
	for len(says) > 0 {
		n := min(piece, len(says))
		if _, err := conn.Write(says[:n]); err != nil {
			return
		}
		says = says[n:]
	}
	select {
	case <-names:
	case <-time.After(20 * time.Millisecond): // it may wait for more
	}
}

// honest is a right answer to a command.
func honest(name string) string {
	switch name {
	case "HELLO":
		return "%1\r\n+proto\r\n:3\r\n"
	case "SUBSCRIBE":
		return ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
	case "PING":
		return "+PONG\r\n"
	default:
		return "$-1\r\n"
	}
}

// readCommands sends the names of commands as they come.
func readCommands(conn net.Conn, names chan<- string) {
	in := bufio.NewReader(conn)
	for {
		name, err := readCommand(in)
		if err != nil {
			return
		}
		names <- name
	}
}

// readCommand reads a command and returns its name.
func readCommand(in *bufio.Reader) (name string, err error) {
	text, err := proto.Read(in)
	if err != nil {
		return "", err
	}
	words, err := proto.ReadStrings(text)
	return strings.Join(words[:min(len(words), 1)], ""), err
}

// Anybody who may publish can say anything. A message is of this version and within its bounds, or
// it is none.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		"1 0 1790000000000000 host/AAAAAAAAAAAAAAAAAAAAAA", "1 86400000 1 1 0000000000000001 AAAAAAAAAAAAAAAAAAAAAA me", "2 0 1 x", "0 1 x", "",
		"1 9223372036854775807 18446744073709551615 x", "1 -1 1 x", "1 +1 +1 x", "1 0 1", "1  1 x", "1 0 1 \x00\xff", "1 0 18446744073709551616 x",
		"1 0x1 17 x", "1 1e3 17 x", "1\t0 17 x", "01 0 17 x", " 1 0 17 x", "10 0 17 x", "1 3153600000001 17 x", "1 0 17 ", "1 3153600000000 17 a b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := wire.ParseMessage(text)
		if !ok {
			require.Zero(t, m)
			return
		}
		require.Regexp(t, fmt.Sprintf("^1 0*%d 0*%d ", m.After.Milliseconds(), m.Number), text)
		require.True(t, strings.HasSuffix(text, " "+m.Release))
		require.GreaterOrEqual(t, m.After, time.Duration(0))
		require.LessOrEqual(t, m.After, MaxKeep)
		again, ok := wire.ParseMessage(fmt.Sprint("1 ", m.After.Milliseconds(), " ", m.Number, " ", m.Release))
		require.True(t, ok)
		require.Equal(t, m, again)
	})
}

// A name comes back out of every reservation that it went into, and no text of another version
// reserves anything. Members sort by their numbers.
func FuzzMember(f *testing.F) {
	process := wire.NewProcess()
	for _, seed := range []string{"me", "", "1 2 3", "host 1/a b", "R 1 0000000000000001 " + process + " me", "R 2 0000000000000001 " + process + " me", "\x00"} {
		f.Add(seed, uint64(17))
	}
	f.Fuzz(func(t *testing.T, text string, number uint64) {
		member := wire.NewMember(number, process, text)
		identity, ok := wire.ReservedFor("R " + member)
		require.True(t, ok)
		require.Equal(t, text, identity)
		require.Equal(t, number, wire.MemberNumber(member))
		require.True(t, number == 0 || number >= 1e16 || wire.NewMember(number-1, process, text) < member)
		for _, version := range []string{"", "0 ", "2 ", "11 ", "01 ", "1"} {
			_, ok = wire.ReservedFor("R " + version + member[2:])
			require.False(t, ok, "%q", version)
		}
		_, ok = wire.ReservedFor(member)
		require.False(t, ok, "a member alone")
		if identity, ok = wire.ReservedFor(text); ok {
			require.True(t, strings.HasPrefix(text, "R 1 "))
			require.True(t, strings.HasSuffix(text, " "+identity))
		}
	})
}
