package cluster

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/web"
)

// Prefix is where the pages are mounted. It is not the top, so that a link that is not relative
// fails.
const Prefix = "/ops/tenure"

// serve serves the pages under Prefix, and nothing else, at an address until stop is called. It
// accepts orders from every client, under the name ann. top is the URL of the server.
func serve(address string, a *admin.Client, options ...web.Option) (top string, stop func() error, err error) {
	ann := func(*http.Request, admin.Order) (string, error) { return "ann", nil }
	h, err := web.New(a, append(options, web.WithActions(ann))...)
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(Prefix+"/", http.StripPrefix(Prefix, h))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, errors.Join(err, h.Close())
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux}}
	server.Start()
	return server.URL, func() error {
		err := h.Close() // ends its streams
		server.CloseClientConnections()
		server.Close()
		return err
	}, nil
}
