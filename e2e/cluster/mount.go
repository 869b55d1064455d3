package cluster

import (
	"net/http"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/web"
)

// Prefix is where the pages are mounted. It is not the top, so that a link that is not relative
// fails.
const Prefix = "/ops/tenure"

// mounted serves the handler of package web under Prefix, and nothing else. It accepts orders from
// every client, under the name ann.
type mounted struct {
	http.Handler
	close func() error // ends the streams
}

func mount(a *admin.Client, options ...web.Option) (*mounted, error) {
	ann := func(*http.Request, admin.Order) (string, error) { return "ann", nil }
	h, err := web.New(a, append(options, web.WithActions(ann))...)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(Prefix+"/", http.StripPrefix(Prefix, h))
	return &mounted{mux, h.Close}, nil
}
