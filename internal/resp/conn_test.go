package resp

import (
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// script is a connection on which a server says what it is told to, in pieces.
type script struct {
	net.Conn
	says  [][]byte
	heard []byte
	end   error
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.says) == 0 {
		return 0, s.end
	}
	n := copy(b, s.says[0])
	if s.says[0] = s.says[0][n:]; len(s.says[0]) == 0 {
		s.says = s.says[1:]
	}
	return n, nil
}

func (s *script) Write(b []byte) (int, error) {
	s.heard = append(s.heard, b...)
	return len(b), nil
}

// command is a command as a client sends it.
func command(words ...string) string {
	var b strings.Builder
	b.WriteString("*" + strconv.Itoa(len(words)) + "\r\n")
	for _, w := range words {
		b.WriteString("$" + strconv.Itoa(len(w)) + "\r\n" + w + "\r\n")
	}
	return b.String()
}

// converse sends commands, separated by a blank line, through a guard and returns what of the
// server's words comes through, and with which error it ends.
func converse(t *testing.T, commands []string, says string, piece int) (string, error) {
	t.Helper()
	s := &script{end: io.EOF}
	for rest := []byte(says); len(rest) > 0; {
		n := min(piece, len(rest))
		s.says = append(s.says, rest[:n])
		rest = rest[n:]
	}
	c := Guard(s)
	for _, cmd := range commands {
		for rest := command(strings.Fields(cmd)...); len(rest) > 0; {
			n := min(piece, len(rest))
			_, err := c.Write([]byte(rest[:n]))
			require.NoError(t, err)
			rest = rest[n:]
		}
	}
	read, err := io.ReadAll(c)
	if err != nil {
		_, again := c.Read(make([]byte, 1))
		require.Equal(t, err, again, "it stays refused")
		_, again = c.Write([]byte(command("PING")))
		require.Equal(t, err, again, "nothing more is sent")
	}
	return string(read), err
}

var pieces = []int{1, 2, 3, 7, 1 << 20}

func TestGoodReplies(t *testing.T) {
	subscribed := ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
	message := ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"
	for _, test := range []struct {
		name     string
		commands []string
		says     string
	}{
		{"each type", []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"},
			"+OK\r\n-ERR no\r\n:-12\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n#t\r\n,1.5\r\n(123\r\n=7\r\ntxt:abc\r\n"},
		{"lists", []string{"1", "2", "3", "4"}, "*2\r\n*1\r\n:1\r\n*0\r\n%1\r\n+proto\r\n:3\r\n~2\r\n$1\r\na\r\n_\r\n*0\r\n"},
		{"the largest text", []string{"GET k"}, "$1048576\r\n" + strings.Repeat("x", 1<<20) + "\r\n"},
		{"subscriptions", []string{"HELLO 3", "SUBSCRIBE a", "PING"}, "%1\r\n+proto\r\n:3\r\n" + message + subscribed + message + "+PONG\r\n" + message},
		{"a refused subscription", []string{"HELLO 3", "SUBSCRIBE a", "PING"}, "+OK\r\n-NOPERM no\r\n+PONG\r\n"},
		{"a push of another kind", []string{"HELLO 3"}, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n"},
		{"a name in small letters", []string{"hello 3", "subscribe a"}, "+OK\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"},
		{"a list that is no push", []string{"EVALSHA x"}, "*2\r\n$7\r\nmessage\r\n$1\r\na\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, piece := range pieces {
				read, err := converse(t, test.commands, test.says, piece)
				require.NoError(t, err, "in pieces of %d", piece)
				require.Equal(t, test.says, read)
			}
		})
	}
}

func TestBadReplies(t *testing.T) {
	for _, test := range []struct {
		name     string
		commands []string
		says     string
		passed   string // the messages before it
		what     string
	}{
		{"unasked", nil, "+OK\r\n", "", "a reply to no command"},
		{"surplus", []string{"GET k"}, "$-1\r\n$-1\r\n", "$-1\r\n", "a reply to no command"},
		{"negative text", []string{"GET k"}, "$-2\r\n", "", "a length that is none"},
		{"negative list", []string{"GET k"}, "*-2\r\n", "", "a length that is none"},
		{"null of a map", []string{"GET k"}, "%-1\r\n", "", "a length that is none"},
		{"null of a push", []string{"GET k"}, ">-1\r\n", "", "a length that is none"},
		{"huge text", []string{"GET k"}, "$9000000000000000000\r\n", "", "a length that is none"},
		{"large text", []string{"GET k"}, "$1048577\r\n", "", "a reply that is too large"},
		{"huge list", []string{"GET k"}, "*100000000000\r\n", "", "a length that is none"},
		{"large list", []string{"GET k"}, "*999999\r\n", "", "a reply that is too large"},
		{"large map", []string{"GET k"}, "%20000\r\n", "", "a reply that is too large"},
		{"large in parts", []string{"GET k"}, "*2\r\n$600000\r\n" + strings.Repeat("x", 600000) + "\r\n$600000\r\n", "", "a reply that is too large"},
		{"no number", []string{"GET k"}, "$1x\r\n", "", "a length that is none"},
		{"no length", []string{"GET k"}, "$\r\n", "", "a length that is none"},
		{"streamed text", []string{"GET k"}, "$?\r\n;3\r\nabc\r\n;0\r\n", "", "a length that is none"},
		{"streamed list", []string{"GET k"}, "*?\r\n:1\r\n.\r\n", "", "a length that is none"},
		{"attribute", []string{"GET k"}, "|1\r\n+a\r\n+b\r\n:1\r\n", "", "a type of reply that does not exist or is not used here: '|'"},
		{"end of nothing", []string{"GET k"}, ".\r\n", "", "a type of reply that does not exist or is not used here: '.'"},
		{"HTTP", []string{"GET k"}, "HTTP/1.1 400 Bad Request\r\n", "", "a type of reply that does not exist or is not used here: 'H'"},
		{"TLS", []string{"GET k"}, "\x15\x03\x01", "", "a type of reply that does not exist or is not used here: '\\x15'"},
		{"deep", []string{"GET k"}, strings.Repeat("*1\r\n", 17), "", "a reply that is nested too deeply"},
		{"push inside", []string{"GET k"}, "*1\r\n>2\r\n", "", "a push inside of a reply"},
		{"text without its end", []string{"GET k"}, "$1\r\nab\r\n", "", "a text that does not end where it should"},
		{"line without return", []string{"GET k"}, "+OK\n", "", "a line that does not end as it should"},
		{"line of nothing", []string{"GET k"}, "+\n", "", "a line that does not end as it should"},
		{"null of something", []string{"GET k"}, "_x\r\n", "", "a text that does not end where it should"},
		{"boolean of something", []string{"GET k"}, "#true\r\n", "", "a text that does not end where it should"},
		{"long number", []string{"GET k"}, ":" + strings.Repeat("0", 30) + "1\r\n", "", "a number that is none"},
		{"long length", []string{"GET k"}, "$" + strings.Repeat("0", 30) + "1\r\n", "", "a length that is none"},
		{"number of letters", []string{"GET k"}, ":1e3\r\n", "", "a number that is none"},
		{"endless line", []string{"GET k"}, "+" + strings.Repeat("x", 20000) + "\r\n", "", "a line that is too long"},
		{"unasked subscription", []string{"HELLO 3", "PING"}, "+OK\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", "+OK\r\n", "the confirmation of a subscription that nobody asked for"},
		{"subscription before its turn", []string{"HELLO 3", "PING", "SUBSCRIBE a"}, "+OK\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", "+OK\r\n", "the confirmation of a subscription that nobody asked for"},
		{"subscription in a transaction", []string{"HELLO 3", "SUBSCRIBE a"}, "+OK\r\n+QUEUED\r\n", "+OK\r\n", "no answer to SUBSCRIBE"},
		{"a push of nothing", []string{"HELLO 3"}, ">0\r\n", "", "a list that is too short"},
		{"a push of no kind", []string{"HELLO 3"}, ">2\r\n:1\r\n:2\r\n", "", "a push of no kind"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, piece := range pieces {
				read, err := converse(t, test.commands, test.says, piece)
				var wrong *Error
				require.ErrorAs(t, err, &wrong, "in pieces of %d", piece)
				require.Equal(t, test.what, wrong.What, "in pieces of %d", piece)
				require.Equal(t, test.passed, read, "what came before it passes")
			}
		})
	}
}

// Servers that are full, or protected, say so to everybody who connects, and end the connection.
func TestUnaskedErrorIsQuoted(t *testing.T) {
	const full = "ERR max number of clients reached"
	for name, commands := range map[string][]string{"before the first command": nil, "after it": {"HELLO 3", "SELECT 1"}} {
		t.Run(name, func(t *testing.T) {
			_, err := converse(t, commands, "-"+full+"\r\n", 1<<20)
			var wrong *Error
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, full, wrong.Said)
			require.ErrorContains(t, err, full)
		})
	}
	_, err := converse(t, []string{"HELLO 3", "PING"}, "-ERR unknown command\r\n+PONG\r\n", 1<<20)
	require.NoError(t, err, "an error that was not its last word")
}

func TestClientThatSendsNoCommand(t *testing.T) {
	for sent, what := range map[string]string{
		"PING\r\n": "no command", "*1\r\nPING\r\n": "no command", "*x\r\n": "no command", "*1\r\n+PING\r\n": "no command",
		command("HELLO", "2"): "RESP3", command("subscribe", "a", "b"): "one channel", command("PSUBSCRIBE"): "one channel",
	} {
		s := &script{}
		_, err := Guard(s).Write([]byte(sent))
		require.ErrorContains(t, err, what)
		require.Empty(t, s.heard)
	}
}

// A client that asks for RESP2 has been refused RESP3: the server has said why.
func TestServerWithoutHello(t *testing.T) {
	const no = "ERR unknown command 'HELLO'"
	c := Guard(&script{says: [][]byte{[]byte("-" + no + "\r\n")}})
	_, err := c.Write([]byte(command("HELLO", "3")))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 100))
	require.NoError(t, err)
	_, err = c.Write([]byte(command("HELLO", "2")))
	require.Equal(t, &Error{What: "no RESP3, which is needed", Said: no}, err)
}

// Deadlines and ends of a connection are what they were.
func TestErrorsOfTheConnectionPass(t *testing.T) {
	near, far := net.Pipe()
	c := Guard(near)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(-time.Second)))
	_, err := c.Read(make([]byte, 1))
	var timeout net.Error
	require.True(t, errors.As(err, &timeout) && timeout.Timeout())
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	require.NoError(t, far.Close())
	_, err = c.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
}

func TestOwedIsBounded(t *testing.T) {
	var o owed
	for i := range 10_000 {
		o.add(anything)
		o.add(confirmation)
		if i > 3 {
			o.take()
			o.take()
		}
	}
	require.LessOrEqual(t, cap(o.answers), 32, "what was answered is forgotten")
}

// exchange is what an acquisition costs a connection: a command of that size, and its answer.
var exchange = struct{ sent, answer string }{
	command("EVALSHA", strings.Repeat("a", 40), "3", "tenure:{key}", "tenure:fences", "tenure:{key}:wait",
		strings.Repeat("o", 60), "10000", "1780000000000000", "86400000", "2000000", "", ""),
	"$35\r\n1780000000000001 1780000000 123456 \r\n",
}

// endless answers each command.
type endless struct {
	net.Conn
	answer []byte
}

func (e *endless) Read(b []byte) (int, error)  { return copy(b, e.answer), nil }
func (e *endless) Write(b []byte) (int, error) { return len(b), nil }

func TestGuardAllocatesNothing(t *testing.T) {
	c := Guard(&endless{answer: []byte(exchange.answer)})
	sent, buffer := []byte(exchange.sent), make([]byte, 1<<10)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_, _ = c.Write(sent)
		_, _ = c.Read(buffer)
	}))
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
