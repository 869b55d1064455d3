package rival

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

// mimic is the floor with the very commands that Tenure sends: those of one pair, as the servers'
// MONITOR showed them, with other keys. The rest is as at the floor, and as little of a lock:
// answers are not looked at, so it would not notice a token that has to be agreed.
type mimic struct {
	*floor
	acquire, release [][]string // words, by node
}

// mimicKey is the key of the pair that is looked at. No other word contains it.
const mimicKey = "versus-mimicked-key"

const (
	mimicMark    = "versus-mark"
	mimicPause   = 100 * time.Millisecond // after which a pair has reached every server
	mimicTimeout = 10 * time.Second
)

func openMimic(c Config) (_ Rival, err error) {
	q, err := OpenQuorum(c)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	r, err := openFloor(c)
	if err != nil {
		return nil, err
	}
	m := &mimic{floor: r.(*floor)}
	defer func() {
		if err != nil {
			_ = m.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), mimicTimeout)
	defer cancel()
	// The pair before the one that is looked at loads scripts.
	for i := range 2 {
		var monitors []*monitor
		if i == 1 {
			for _, url := range c.URLs {
				mon, err := openMonitor(url)
				if err != nil {
					return nil, err
				}
				defer mon.Close()
				monitors = append(monitors, mon)
			}
		}
		lease, err := q.TryAcquire(ctx, mimicKey)
		if err != nil {
			return nil, err
		}
		if m.acquire, err = m.seen(ctx, monitors); err != nil {
			return nil, errors.Join(err, lease.Release(ctx))
		}
		if err := lease.Release(ctx); err != nil {
			return nil, err
		}
		if m.release, err = m.seen(ctx, monitors); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// seen returns the command with the key that each server got since it was last called.
func (m *mimic) seen(ctx context.Context, monitors []*monitor) ([][]string, error) {
	time.Sleep(mimicPause)
	var all [][]string
	for i, mon := range monitors {
		c := m.clients[i]
		if err := c.Do(ctx, c.B().Echo().Message(mimicMark).Build()).Error(); err != nil {
			return nil, fmt.Errorf("rival: %w", err)
		}
		words, err := mon.command()
		if err != nil {
			return nil, err
		}
		all = append(all, words)
	}
	return all, nil
}

func (m *mimic) Try(ctx context.Context, key string) (Held, error) {
	if err := m.send(ctx, m.acquire, key); err != nil {
		return nil, err
	}
	return &mimicHeld{m, key}, nil
}

type mimicHeld struct {
	*mimic
	key string
}

func (h *mimicHeld) Release(ctx context.Context) error { return h.send(ctx, h.mimic.release, h.key) }

func (m *mimic) send(ctx context.Context, commands [][]string, key string) error {
	// Only the hash of the script differs from node to node.
	const ofNode = 2
	rest := append([]string(nil), commands[0][ofNode:]...)
	for i, word := range rest {
		rest[i] = strings.ReplaceAll(word, mimicKey, key)
	}
	return m.each(func(i int, c valkey.Client) error {
		return c.Do(ctx, c.B().Arbitrary(commands[i][:ofNode]...).Args(rest...).Build()).Error()
	})
}

// monitor is a connection that sees what its server is sent.
type monitor struct {
	net.Conn
	r *bufio.Reader
}

func openMonitor(address string) (*monitor, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("rival: %w", err)
	}
	conn, err := net.DialTimeout("tcp", u.Host, mimicTimeout)
	if err != nil {
		return nil, fmt.Errorf("rival: %w", err)
	}
	m := &monitor{conn, bufio.NewReader(conn)}
	late := conn.SetDeadline(time.Now().Add(mimicTimeout))
	_, unsent := fmt.Fprint(conn, "MONITOR\r\n")
	line, unread := m.r.ReadString('\n')
	if err := errors.Join(late, unsent, unread); err != nil || line != "+OK\r\n" {
		conn.Close()
		return nil, errors.Join(fmt.Errorf("rival: MONITOR was answered %q", line), err)
	}
	return m, nil
}

// command reads up to the mark, and returns the one command with the key that a client sent before
// it.
func (m *monitor) command() ([]string, error) {
	var found []string
	for {
		line, err := m.r.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("rival: MONITOR: %w", err)
		}
		words, err := monitored(line)
		switch {
		case err != nil:
			return nil, err
		case len(words) == 2 && words[1] == mimicMark:
			if len(found) < 3 {
				return nil, fmt.Errorf("rival: Tenure's command is not one that can be mimicked: %q", found)
			}
			return found, nil
		case !strings.Contains(strings.Join(words, " "), mimicKey):
		case found != nil:
			return nil, fmt.Errorf("rival: Tenure sends more than one command: %q, %q", found, words)
		default:
			found = words
		}
	}
}

// monitored reads a line such as
//
//	+1700000000.123456 [0 127.0.0.1:50000] "EVALSHA" "..." "1" "key"
//
// and returns no words for what a script called.
func monitored(line string) ([]string, error) {
	_, rest, ok := strings.Cut(strings.TrimSpace(line), "] ")
	if !ok {
		return nil, fmt.Errorf("rival: unexpected line of MONITOR: %.200q", line)
	}
	if strings.Contains(line[:len(line)-len(rest)], " lua]") {
		return nil, nil
	}
	var words []string
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, fmt.Errorf("rival: unexpected line of MONITOR: %.200q", line)
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("rival: unexpected line of MONITOR: %.200q", line)
		}
		words, rest = append(words, word), strings.TrimPrefix(rest[len(quoted):], " ")
	}
	return words, nil
}
