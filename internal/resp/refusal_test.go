package resp

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// With TLS 1.3 a server reads the client's certificate when the client writes already: it says why
// it refuses the certificate, and ends the connection under the client's first command.
func TestReasonBeforeTheEndOfAConnection(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ended := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_ = tls.Server(conn, &tls.Config{Certificates: web.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert}).Handshake()
			_ = conn.(*net.TCPConn).SetLinger(0) // as with what the client has sent, and the server not read
			err = conn.Close()
		}
		ended <- err
	}()
	conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, <-ended)
	_, err = Guard(conn).Write([]byte(command("HELLO", "3")))
	require.EqualError(t, err, "remote error: tls: certificate required")
}

// reset is a connection that is reset when something is written.
type reset struct{ *script }

func (reset) Write([]byte) (int, error) { return 0, syscall.ECONNRESET }

// A reply that has come before a connection was reset is its reader's.
func TestWriteTakesNoReply(t *testing.T) {
	s := &script{says: [][]byte{[]byte("+PONG\r\n"), []byte(":12\r\n")}}
	c := Guard(s)
	_, err := c.Write([]byte(command("PING")))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 64))
	require.NoError(t, err)
	c.Conn = reset{s}
	_, err = c.Write([]byte(command("PTTL", "key")))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Equal(t, ":12\r\n", string(s.says[0]))
}
