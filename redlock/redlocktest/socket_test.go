package redlocktest

import (
	"bytes"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func testSockets(t *testing.T, test func(t *testing.T, client, server net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client, server := newSockets(addr{network: "pipe", text: "node"})
		t.Cleanup(func() {
			require.NoError(t, client.Close())
			require.NoError(t, server.Close())
		})
		test(t, client, server)
	})
}

func TestSocketBuffersWrites(t *testing.T) {
	testSockets(t, func(t *testing.T, client, server net.Conn) {
		n, err := client.Write(make([]byte, socketBuffer))
		require.NoError(t, err)
		require.Equal(t, socketBuffer, n)

		require.NoError(t, client.SetWriteDeadline(time.Now().Add(time.Second)))
		start := time.Now()
		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))

		require.NoError(t, client.SetWriteDeadline(time.Time{}))
		done := make(chan error, 1)
		go func() {
			_, err := client.Write([]byte("x"))
			done <- err
		}()
		synctest.Wait()
		require.Empty(t, done)
		_, err = io.ReadFull(server, make([]byte, socketBuffer+1))
		require.NoError(t, err)
		require.NoError(t, <-done)
	})
}

func TestSocketDeadlines(t *testing.T) {
	testSockets(t, func(t *testing.T, client, server net.Conn) {
		require.NoError(t, client.SetDeadline(time.Now().Add(time.Minute)))
		start := time.Now()
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var netErr net.Error
		require.ErrorAs(t, err, &netErr)
		require.True(t, netErr.Timeout())
		require.Equal(t, time.Minute, time.Since(start))

		require.NoError(t, client.SetReadDeadline(time.Time{}))
		done := make(chan error, 1)
		go func() {
			_, err := client.Read(make([]byte, 1))
			done <- err
		}()
		synctest.Wait()
		require.NoError(t, client.SetReadDeadline(time.Now()), "a deadline set later ends a read that waits")
		require.ErrorIs(t, <-done, os.ErrDeadlineExceeded)
	})
}

func TestSocketClose(t *testing.T) {
	testSockets(t, func(t *testing.T, client, server net.Conn) {
		_, err := client.Write([]byte("last words"))
		require.NoError(t, err)
		require.NoError(t, client.Close())
		_, err = client.Read(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)

		got, err := io.ReadAll(server)
		require.NoError(t, err)
		require.Equal(t, "last words", string(got))
		_, err = server.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

func TestSocketCarriesEverythingInOrder(t *testing.T) {
	testSockets(t, func(t *testing.T, client, server net.Conn) {
		want := make([]byte, 3*socketBuffer+17)
		for i := range want {
			want[i] = byte(i * 31)
		}
		go func() {
			client.Write(want)
			client.Close()
		}()
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
	})
}
