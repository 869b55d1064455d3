// Package cluster starts real servers, and links to them that can be cut, slowed and narrowed.
package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// commandTimeout bounds a command that the cluster sends to a server itself.
const commandTimeout = 5 * time.Second

// age is the uptime that servers report at first: more than any restart gate wants.
const age = 24 * time.Hour

// Cluster is the servers of a topology, each behind two links. It is safe for concurrent use once
// all Routes are made. Faults of one server must not overlap.
type Cluster struct {
	plan.Topology
	prefix, dir string // see New
	fleet       *valkeytest.Fleet
	links       []*link
}

// New starts the servers and the links. The prefix is of the keys of clients, and the name of their
// user: empty for the default user alone. The servers find users and certificates in dir.
func New(t plan.Topology, prefix, dir string) (c *Cluster, err error) {
	c = &Cluster{Topology: t, prefix: prefix, dir: dir}
	opts := []valkeytest.Option{valkeytest.WithAge(age)}
	if prefix != "" {
		config, err := c.users()
		if err != nil {
			return nil, err
		}
		opts = append(opts, valkeytest.WithConfig(config), valkeytest.WithUser("operator", password))
	}
	if t.TLS {
		args, err := c.certificates()
		if err != nil {
			return nil, err
		}
		// The cluster's own connections need no check. Clients check the certificates.
		opts = append(opts, valkeytest.WithArgs(args...), valkeytest.WithTLS(&tls.Config{InsecureSkipVerify: true}))
	}
	if !t.Memory {
		// Written data survives the SIGKILL of a server, synced or not. A busy disk would make a
		// sync stop all servers at once.
		opts = append(opts, valkeytest.WithPersistence(), valkeytest.WithArgs("--appendfsync", "no"))
	}
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy's bandwidth toxic traces to the global logger
	if c.fleet, err = valkeytest.New(t.Servers, opts...); err != nil {
		return nil, err
	}
	for i := range t.Servers {
		for _, side := range []plan.Side{plan.Left, plan.Right} {
			if _, err := c.link(side, i); err != nil {
				return nil, errors.Join(err, c.Close())
			}
		}
	}
	return c, nil
}

// link makes a link from the clients of a side to a server.
func (c *Cluster) link(side plan.Side, server int) (*link, error) {
	l := &link{side: side, server: server, upstream: c.fleet.Node(server).Addr(), listen: "127.0.0.1:0"}
	if err := l.open(); err != nil {
		return nil, err
	}
	c.links = append(c.links, l)
	return l, nil
}

// URLs returns the URLs by which the clients of a side reach the servers.
func (c *Cluster) URLs(side plan.Side) (urls []string) {
	for _, l := range c.links {
		if l.side == side {
			urls = append(urls, c.url(l))
		}
	}
	return urls
}

// url returns the URL of a server by a link. The name of the server is the same on all links.
func (c *Cluster) url(way *link) string {
	scheme, user := "valkey", ""
	if c.TLS {
		scheme = "valkeys"
	}
	if c.prefix != "" {
		user = c.prefix + ":" + password + "@"
	}
	return fmt.Sprintf("%s://%s%s?name=server-%d", scheme, user, way.addr(), way.server+1)
}

// Routes makes a link of its own to each server for a client, and returns the URLs of these links.
// The round trip to server i takes distances[i]. Faults of links do not strike these links.
func (c *Cluster) Routes(distances []time.Duration) (urls []string, err error) {
	const neither plan.Side = -1
	for i, distance := range distances {
		l, err := c.link(neither, i)
		if err == nil {
			err = l.strike(plan.Fault{Kind: plan.Latency, Amount: distance})
		}
		if err != nil {
			return nil, err
		}
		urls = append(urls, c.url(l))
	}
	return urls, nil
}

// effect returns the functions that make a fault of a server happen and put it right; nil for a
// fault of links.
func (c *Cluster) effect(f plan.Fault) (do, undo func(*valkeytest.Node) error) {
	switch f.Kind {
	case plan.RestartKeep, plan.RestartEmpty:
		return (*valkeytest.Node).Kill, func(n *valkeytest.Node) error { return n.Restart(f.Kind == plan.RestartKeep) }
	case plan.FreezeServer:
		return (*valkeytest.Node).Freeze, (*valkeytest.Node).Thaw
	case plan.ScriptFlush:
		return command("SCRIPT", "FLUSH"), func(*valkeytest.Node) error { return nil }
	case plan.ClockForward, plan.ClockBack:
		return func(n *valkeytest.Node) error { return n.JumpClock(f.Jump()) },
			func(n *valkeytest.Node) error { return n.JumpClock(-f.Jump()) }
	case plan.Expire:
		return command("CONFIG", "SET", "tls-cert-file", c.expired()), command("CONFIG", "SET", "tls-cert-file", c.valid())
	}
	return nil, nil
}

func command(args ...string) func(*valkeytest.Node) error {
	return func(n *valkeytest.Node) error {
		ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
		defer cancel()
		server := n.Client()
		if err := server.Do(ctx, server.B().Arbitrary(args...).Build()).Error(); err != nil {
			return fmt.Errorf("cluster: %s: %w", strings.Join(args, " "), err)
		}
		return nil
	}
}

// Strike makes a fault of servers or links happen, to all of its targets at once.
func (c *Cluster) Strike(f plan.Fault) error {
	do, _ := c.effect(f)
	return c.each(f, do, func(l *link) error { return l.strike(f) })
}

// Heal puts right what Strike did.
func (c *Cluster) Heal(f plan.Fault) error {
	_, undo := c.effect(f)
	return c.each(f, undo, (*link).heal)
}

// each calls do for all servers of a fault. If do is nil, it calls link for the links that the
// fault strikes.
func (c *Cluster) each(f plan.Fault, do func(*valkeytest.Node) error, link func(*link) error) error {
	return clients.All(len(f.Targets), func(i int) error {
		n := f.Targets[i]
		if do != nil {
			return do(c.fleet.Node(n))
		}
		var err error
		for _, l := range c.links {
			if l.server == n && (l.side == f.Side || l.side >= plan.Left && f.Side == plan.Both) {
				err = errors.Join(err, link(l))
			}
		}
		return err
	})
}

// owners returns the lease keys under a prefix on a server, each with the identity of the client
// that set it.
func owners(n *valkeytest.Node, prefix string) (owners map[string]string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	server, owners := n.Client(), make(map[string]string)
	names, err := server.Do(ctx, server.B().Keys().Pattern(prefix+":*}").Build()).AsStrSlice()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	values, err := server.Do(ctx, server.B().Mget().Key(names...).Build()).AsStrSlice()
	for i, value := range values {
		// A value is the token, a blank, the identity, a slash, and a random text without a slash.
		// It is empty if the key is gone meanwhile.
		if _, owner, _ := strings.Cut(value, " "); value != "" {
			owners[names[i]] = owner[:max(strings.LastIndexByte(owner, '/'), 0)]
		}
	}
	return owners, err
}

// Leftover lists the lease keys under a prefix that are on servers and must not be there. The keys
// of a life that stopped in order must be gone after a moment, in which its last requests are on
// their way. This moment is far shorter than any TTL. The keys of a life that was killed must be
// gone after the TTL. Every server must be well.
func (c *Cluster) Leftover(prefix string, ttl time.Duration, lives []history.Life) (left []string, err error) {
	const moment, pause = 200 * time.Millisecond, 20 * time.Millisecond
	killed := make(map[string]bool)
	for _, life := range lives {
		killed[life.Name] = life.Killed != 0
	}
	for began := time.Now(); ; time.Sleep(pause) {
		passed, count := time.Since(began), 0
		for i, n := range c.fleet.Nodes() {
			keys, err := owners(n, prefix)
			if err != nil {
				return nil, fmt.Errorf("cluster: cannot list the keys: %w", err)
			}
			count += len(keys)
			for key, owner := range keys {
				if passed > ttl+moment || passed > moment && !killed[owner] {
					left = append(left, fmt.Sprintf("server %d: %s of %s", i+1, key, owner))
				}
			}
		}
		if count == 0 || len(left) > 0 {
			return left, nil
		}
	}
}

// Close ends the links and kills the servers.
func (c *Cluster) Close() error {
	_ = clients.All(len(c.links), func(i int) error { return c.links[i].stop() }) // at worst stuck
	return c.fleet.Close()
}

const password = "password"

// users writes the documented users, with the default user off, and returns a configuration file
// for the servers. Servers check the commands in their append-only file against that.
func (c *Cluster) users() (config string, err error) {
	users, config := filepath.Join(c.dir, "users.acl"), filepath.Join(c.dir, "valkey.conf")
	text := fmt.Sprintf("user default off ~* &* +@all\nuser operator on >%s ~* &* +@all\nuser %[2]s on >%[1]s resetchannels ~%[2]s:* &%[2]s:* -@all %[3]s\n",
		password, c.prefix, redlock.Rights)
	if err = os.WriteFile(users, []byte(text), 0o600); err == nil {
		err = os.WriteFile(config, fmt.Appendf(nil, "aclfile %q\n", users), 0o600)
	}
	return config, err
}

func (c *Cluster) valid() string   { return filepath.Join(c.dir, "valid.crt") }
func (c *Cluster) expired() string { return filepath.Join(c.dir, "expired.crt") }

// certificates writes a valid certificate and an expired one, both for all servers, and returns the
// servers' arguments. Clients trust these certificates themselves.
func (c *Cluster) certificates() (args []string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for name, until := range map[string]time.Time{c.valid(): now.Add(48 * time.Hour), c.expired(): now.Add(-time.Minute)} {
		like := &x509.Certificate{
			SerialNumber: big.NewInt(until.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: until,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		}
		cert, err := x509.CreateCertificate(rand.Reader, like, like, key.Public(), key)
		if err != nil {
			return nil, err
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"--tls-cert-file", c.valid(), "--tls-key-file", c.valid(), "--tls-auth-clients", "no", "--tls-ca-cert-file", c.valid()}, nil
}

// Trusted returns the file of certificates that clients trust; empty without TLS.
func (c *Cluster) Trusted() string {
	if !c.TLS {
		return ""
	}
	return c.valid()
}
