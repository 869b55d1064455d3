package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	password = "password"
	// rights are those of the service that docs/nodes.md has: it may do no more than it needs.
	rights = "-@all +ping +info +time +eval +eval_ro +evalsha +evalsha_ro +get +mget +set +del +exists +pexpire +pttl " +
		"+zadd +zcard +zrange +zrank +zrem +zscore +zrangebylex +hget +hmget +hgetall +hset +hdel +lindex +lpush +lrange +lrem +lset +ltrim " +
		"+publish +subscribe +unsubscribe +punsubscribe +sunsubscribe +discard"
)

// users writes the documented users, with the default user off, and returns a file of configuration
// for the servers. They check what they read from their append-only file against that.
func (c *Config) users() (config string, err error) {
	users, config := filepath.Join(c.Dir, "users.acl"), filepath.Join(c.Dir, "valkey.conf")
	text := fmt.Sprintf("user default off ~* &* +@all\nuser operator on >%s ~* &* +@all\nuser %[2]s on >%[1]s resetchannels ~%[2]s:* &%[2]s:* %[3]s\n",
		password, c.Prefix, rights)
	if err = os.WriteFile(users, []byte(text), 0o600); err == nil {
		err = os.WriteFile(config, fmt.Appendf(nil, "aclfile %q\n", users), 0o600)
	}
	return config, err
}

func (c *Config) valid() string   { return filepath.Join(c.Dir, "valid.crt") }
func (c *Config) expired() string { return filepath.Join(c.Dir, "expired.crt") }

// certificates writes one certificate of all servers that is valid and one that is not any more,
// and returns the servers' arguments. Clients trust these certificates themselves.
func (c *Config) certificates() (args []string, err error) {
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
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(c.Dir, "server.key")
	return []string{"--tls-cert-file", c.valid(), "--tls-key-file", file, "--tls-auth-clients", "no", "--tls-ca-cert-file", c.valid()},
		os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
}

// Trusted is the file of certificates that clients trust; empty without TLS.
func (c *Cluster) Trusted() string {
	if !c.TLS {
		return ""
	}
	return c.valid()
}
