package redlock_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// newer opens a Quorum of another version of the library: it is this one behind a translator. The
// members, messages and scripts that it sends have version 2 where this library has
// version 1, and it hears 1 for 2 and 2 for 1. So each of the two finds what the other one has
// written to be of a version that it does not know.
func (s *servers) newer(opts ...redlock.Option) *redlock.Quorum {
	s.t.Helper()
	tr := &translator{sent: make(map[string]string), said: make(map[string]string)}
	s.t.Cleanup(tr.work.Wait)
	return s.open(append(opts, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) { o.DialCtxFn = tr.dial }))...)
}

// translator stands between clients and their servers.
type translator struct {
	work sync.WaitGroup

	mu         sync.Mutex
	sent, said map[string]string // guarded by mu; hashes of scripts, in each direction
}

func (tr *translator) dial(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
	server, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	pass := func(to, from net.Conn, each func(payload, before string) string) {
		defer to.Close()
		defer from.Close()
		_ = translate(from, to, each)
	}
	tr.work.Go(func() { pass(server, far, tr.toServer) })
	tr.work.Go(func() { pass(far, server, tr.toClient) })
	return near, nil
}

// translate copies RESP, with each text in it changed to one of the same length.
func translate(from io.Reader, to io.Writer, each func(payload, before string) string) error {
	in, out := bufio.NewReader(from), bufio.NewWriter(to)
	before := ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		_, _ = out.WriteString(line)
		if n, err := strconv.Atoi(strings.TrimSpace(line[1:])); err == nil && n >= 0 && strings.Contains("$=!", line[:1]) {
			payload := make([]byte, n+len("\r\n"))
			if _, err := io.ReadFull(in, payload); err != nil {
				return err
			}
			text := string(bytes.TrimSuffix(payload, []byte("\r\n")))
			_, _ = out.WriteString(each(text, before) + "\r\n")
			before = text
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// versions are where the scripts have versions.
var versions = strings.NewReplacer("'^1 ", "'^2 ", "'1 '", "'2 '", "knows 1'", "knows 2'")

func (tr *translator) toServer(text, before string) string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	switch {
	case strings.Contains(text, "redis."):
		newer := versions.Replace(text)
		was, is := sha1.Sum([]byte(text)), sha1.Sum([]byte(newer))
		tr.sent[hex.EncodeToString(was[:])] = hex.EncodeToString(is[:])
		tr.said[hex.EncodeToString(is[:])] = hex.EncodeToString(was[:])
		return newer
	case before == "EVALSHA", before == "EVALSHA_RO":
		if is, ok := tr.sent[text]; ok {
			return is
		}
		return strings.Repeat("0", len(text)) // no server knows it yet
	default:
		return otherVersion(text)
	}
}

func (tr *translator) toClient(text, _ string) string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if was, ok := tr.said[text]; ok {
		return was
	}
	return otherVersion(text)
}

// otherVersion has 2 in the place of version 1, and 1 in the place of 2.
func otherVersion(text string) string {
	for version, other := range map[string]string{"1 ": "2 ", "2 ": "1 "} {
		if rest, ok := strings.CutPrefix(text, version); ok {
			return other + rest
		}
	}
	return text
}
