package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/tenure-dev/tenure/elector"
)

// toLeader answers requests on the leader. The other replicas forward their requests to it.
type toLeader struct {
	elector *elector.Elector
	own     http.Handler
}

// sentOn is the header of a request that a replica has forwarded. Such a request is not forwarded
// again.
const sentOn = "X-Sent-On"

// ServeHTTP asks the nodes for the leader for each request that it forwards. A service with many
// requests keeps the answer of elector.Observe instead.
func (t *toLeader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if t.elector.IsLeader(r.Context()) == nil {
		t.own.ServeHTTP(w, r)
		return
	}
	if r.Header.Get(sentOn) != "" { // the leader has changed since
		unavailable(w, "not the leader any more")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	leader, err := t.elector.Leader(ctx)
	if err != nil {
		unavailable(w, elector.ErrorType(err))
		return
	}
	to, err := parseAddress(leader.Payload)
	if err != nil {
		http.Error(w, "the leader's payload is no address", http.StatusBadGateway)
		return
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.SetXForwarded()
			p.Out.Header.Set(sentOn, "1")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { unavailable(w, "the leader does not answer") },
	}
	proxy.ServeHTTP(w, r)
}

// unavailable asks the client to try again in a second.
func unavailable(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, why, http.StatusServiceUnavailable)
}

// parseAddress parses the payload of a leader. It is not trusted: any process that may write to the
// prefix may have written it.
func parseAddress(payload string) (*url.URL, error) {
	u, err := url.Parse(payload)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || net.ParseIP(u.Hostname()) == nil {
		return nil, errors.New("not of the form http://IP:PORT")
	}
	return u, nil
}
