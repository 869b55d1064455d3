package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Members is what one server knows of the processes of a prefix that use it, see package
// membership: of those that a server counts for now, and for a lifetime after they have ended.
type Members struct {
	Nodes   int           // each of them has; 0 where no server is known
	MaxTTL  time.Duration // the longest in use; 0 for none
	Skew    time.Duration // the largest in use; 0 for none
	Servers []MemberServer
}

// MemberServer is a server that processes vouch for together with the one that was asked.
type MemberServer struct {
	ID      string        // its run_id, or an id of its own where processes have no restart gate
	Address string        // as the process has it that saw it last
	By      string        // identity of that process
	Age     time.Duration // since then, by the clock of the server that was asked
	Gone    bool          // another server has taken its place
}

// ReadMembers asks one server, by way of a client of the caller, which processes of a prefix use
// it. It is for tools that look at nodes before they use them: it writes nothing, and takes no
// part. It needs the rights GET and TIME, and waits as long as the client does, or until ctx ends.
//
// It is information. Errors are the client's, or say that the server keeps something else there; a
// server that no process of the prefix uses is none.
func ReadMembers(ctx context.Context, client valkey.Client, prefix string) (Members, error) {
	if err := checkContext(ctx); err != nil {
		return Members{}, err
	}
	results := client.DoMulti(ctx, client.B().Get().Key(wire.MembersKeys(prefix).Lock).Build(), wire.TimeCommand(client))
	text, err := results[0].ToString()
	if errors.Is(err, valkey.Nil) {
		return Members{}, nil
	} else if err != nil {
		return Members{}, fmt.Errorf("redlock: cannot read who uses a server: %w", err)
	}
	at := wire.Decode([]*wire.Call{{Op: wire.Time}}, results[1], nil)[0]
	if at.Err != nil {
		return Members{}, fmt.Errorf("redlock: cannot read a server's clock: %w", at.Err)
	}
	known := wire.ParseMembers(text, at.Server)
	if known == nil {
		return Members{}, errors.New("redlock: a server keeps something else where who uses it would be, or another version of this library has written it")
	}
	m := Members{Nodes: known.Nodes, MaxTTL: known.MaxTTL, Skew: known.Skew}
	for _, s := range known.Servers {
		m.Servers = append(m.Servers, MemberServer{ID: s.ID, Address: s.Address, By: s.By, Age: s.Age, Gone: s.Gone})
	}
	return m, nil
}
