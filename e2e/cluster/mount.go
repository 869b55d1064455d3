package cluster

import (
	"net/http"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/web"
)

// Prefix is where the pages are mounted: not at the top, so that an address that is not relative
// does not work.
const Prefix = "/ops/tenure"

// mounted is the handler of package web under Prefix, beside which there is nothing. Everybody
// gives orders, as ann.
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
