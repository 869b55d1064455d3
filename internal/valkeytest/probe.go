package valkeytest

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// probeTimeout bounds one probe of a server that accepts but does not answer.
const probeTimeout = time.Second

// probe returns nil if the process with this pid answers commands at address.
// The pid matters: between the choice of a port and its use, another server may
// have taken it.
func probe(address string, cfg *config, pid int) error {
	conn, err := net.DialTimeout("tcp", address, probeTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
		return err
	}
	if cfg.tls != nil {
		conn = tls.Client(conn, cfg.tls)
	}
	r := bufio.NewReader(conn)
	call := func(args ...string) (string, error) {
		request := fmt.Appendf(nil, "*%d\r\n", len(args))
		for _, arg := range args {
			request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(arg), arg)
		}
		if _, err := conn.Write(request); err != nil {
			return "", err
		}
		return readReply(r)
	}
	if cfg.password != "" {
		auth := []string{"AUTH", cfg.user, cfg.password}
		if cfg.user == "" {
			auth = []string{"AUTH", cfg.password}
		}
		if _, err := call(auth...); err != nil {
			return err
		}
	}
	info, err := call("INFO", "server")
	if err != nil {
		return err
	}
	if !strings.Contains(info, fmt.Sprintf("\nprocess_id:%d\r", pid)) {
		return fmt.Errorf("valkeytest: another server answers at %s", address)
	}
	_, err = call("PING") // fails while the server loads its data
	return err
}

// readReply reads a simple or a bulk string. Server errors are errors.
func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch {
	case strings.HasPrefix(line, "+"):
		return line[1:], nil
	case strings.HasPrefix(line, "$"):
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 {
			return "", fmt.Errorf("valkeytest: unexpected reply %q", line)
		}
		body := make([]byte, n+len("\r\n"))
		if _, err := io.ReadFull(r, body); err != nil {
			return "", err
		}
		return string(body[:n]), nil
	default:
		return "", fmt.Errorf("valkeytest: the server says %q", line)
	}
}
