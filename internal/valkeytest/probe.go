package valkeytest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

// probeTimeout bounds one probe of a server that accepts but does not answer.
const probeTimeout = time.Second

// probe returns nil if the process with this pid answers commands at the node's address. The pid
// matters: between the choice of a port and its use, another server may have taken it.
func (n *Node) probe(pid int) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	client, err := n.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	info, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return err
	}
	if !strings.Contains(info, fmt.Sprintf("\nprocess_id:%d\r", pid)) {
		return fmt.Errorf("valkeytest: another server answers at %s", n.Addr())
	}
	return client.Do(ctx, client.B().Ping().Build()).Error() // fails while the server loads its data
}

// connect makes a client of one connection that sends nothing of its own after the handshake.
func (n *Node) connect() (valkey.Client, error) {
	o := valkey.MustParseURL(n.URL())
	if n.cfg.tls != nil {
		o.TLSConfig = n.cfg.tls
	}
	o.ForceSingleClient = true
	o.DisableRetry = true
	o.DisableCache = true
	o.PipelineMultiplex = -1
	o.Dialer.KeepAlive = -1 // or it would send PING every second
	o.ConnWriteTimeout = observeTimeout
	return valkey.NewClient(o)
}
