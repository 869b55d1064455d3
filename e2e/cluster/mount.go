package cluster

import (
	"errors"
	"net/http"
	"strings"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/web"
)

// Prefix is where the pages are mounted: not at the top, so that an address that is not relative
// does not work.
const Prefix = "/ops/tenure"

// actorHeader names who gives an order; without it that is "ann".
const actorHeader = "X-Actor"

// Mounted is the handler of package web under Prefix, beside which there is nothing.
type Mounted struct {
	http.Handler
	web *web.Handler
}

// Close ends the streams.
func (m *Mounted) Close() error { return m.web.Close() }

// Mount mounts the pages. Orders are allowed, unless options say otherwise.
func Mount(a *admin.Client, options ...web.Option) (*Mounted, error) {
	return mount(a, append([]web.Option{web.WithActions(authorize)}, options...)...)
}

// MountReadOnly mounts the pages without orders.
func MountReadOnly(a *admin.Client, options ...web.Option) (*Mounted, error) {
	return mount(a, options...)
}

func mount(a *admin.Client, options ...web.Option) (*Mounted, error) {
	h, err := web.New(a, options...)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(Prefix+"/", http.StripPrefix(Prefix, h))
	return &Mounted{Handler: mux, web: h}, nil
}

// authorize lets everybody but mallory give orders, as long as they are about nothing secret.
func authorize(r *http.Request, o admin.Order) (string, error) {
	actor := r.Header.Get(actorHeader)
	if actor == "" {
		actor = "ann"
	}
	if actor == "mallory" || strings.Contains(o.Target, "secret") {
		return "", errors.New(actor + " may not do that")
	}
	return actor, nil
}
