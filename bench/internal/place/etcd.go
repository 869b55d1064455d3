package place

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// EtcdRole is the role of the process that etcd is embedded in: one of its own, so that its CPU and
// memory are not its client's.
const EtcdRole = "etcd"

// etcdReadyWithin bounds how long etcd may take to start.
const etcdReadyWithin = 30 * time.Second

// etcdPorts is how often free ports are looked for: another process may take one before etcd does.
const etcdPorts = 5

type etcdReady struct {
	Endpoint string `json:"endpoint"`
}

// StartEtcd starts a cluster of one member, on a free loopback port. Like the servers of the others
// it does not wait for its disk.
func StartEtcd() (child *Child, endpoint string, err error) {
	var ready etcdReady
	child, err = Spawn(EtcdRole, struct{}{}, &ready)
	return child, ready.Endpoint, err
}

// ServeEtcd is the role.
func ServeEtcd(_ json.RawMessage, parent *bufio.Reader, ready func(any) error) (any, error) {
	dir, err := os.MkdirTemp("", "versus-etcd-")
	if err != nil {
		return nil, fmt.Errorf("place: %w", err)
	}
	defer os.RemoveAll(dir)
	var server *embed.Etcd
	var endpoint string
	for range etcdPorts {
		if server, endpoint, err = startEtcd(dir); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("place: etcd: %w", err)
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(etcdReadyWithin):
		return nil, fmt.Errorf("place: etcd was not ready within %s", etcdReadyWithin)
	}
	if err := ready(etcdReady{endpoint}); err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, parent)
	return struct{}{}, err
}

func startEtcd(dir string) (*embed.Etcd, string, error) {
	client, err := freeURL()
	peer, err2 := freeURL()
	if err := errors.Join(err, err2); err != nil {
		return nil, "", err
	}
	c := embed.NewConfig()
	c.Dir, c.Logger, c.LogLevel, c.LogOutputs = dir, "zap", "panic", []string{"stderr"}
	c.UnsafeNoFsync = true
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	server, err := embed.StartEtcd(c)
	return server, client.Host, err
}

func freeURL() (url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return url.URL{}, err
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}
