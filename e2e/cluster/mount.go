package cluster

import (
	"net/http"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/web"
)

// Prefix is where the pages are mounted. It is not the top, so that a link that is not relative
// fails.
const Prefix = "/ops/tenure"

// mount returns a handler that serves the pages under Prefix, and nothing else, and the function
// that ends their streams. Orders are accepted from every client, under the name ann.
func mount(a *admin.Client, options ...web.Option) (http.Handler, func() error, error) {
	ann := func(*http.Request, admin.Order) (string, error) { return "ann", nil }
	h, err := web.New(a, append(options, web.WithActions(ann))...)
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(Prefix+"/", http.StripPrefix(Prefix, h))
	return mux, h.Close, nil
}
