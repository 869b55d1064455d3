package web_test

import (
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/web"
)

// client is an *admin.Client on three nodes in this process.
func client() (a *admin.Client, end func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(quiet))
	if err != nil {
		log.Fatal(err)
	}
	if a, err = admin.New(q, admin.WithLogger(quiet)); err != nil {
		log.Fatal(err)
	}
	return a, func() {
		_ = q.Close()
		_ = fleet.Close()
	}
}

// Orders are given by those who are logged in, in their name; here with a header that a proxy in
// front sets, and removes from what browsers send.
func ExampleWithActions() {
	a, end := client()
	defer end()
	h, err := web.New(a, web.WithLogger(slog.New(slog.DiscardHandler)), web.WithActions(func(r *http.Request, o admin.Order) (string, error) {
		user := r.Header.Get("X-Forwarded-User")
		if user == "" {
			return "", errors.New("nobody is logged in")
		}
		if o.Kind != admin.OrderPause && o.Kind != admin.OrderResume && !onCall(user) {
			return "", fmt.Errorf("%s is not on call", user)
		}
		return user, nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/order?kind=pause&job=nightly-report", nil))
	fmt.Println(answer.Code)
	// Output: 200
}

func onCall(user string) bool { return user == "ann" }

// A server that ends its streams of events when it is shut down; a page on loopback that no name of
// another site leads to.
func ExampleHandler_Close() {
	a, end := client()
	defer end()
	h, err := web.New(a, web.WithHosts("localhost", "127.0.0.1", "::1"))
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	server.RegisterOnShutdown(func() { _ = h.Close() })
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	_ = server.Close()
	_ = h.Close()
	fmt.Println(<-served)
	// Output: http: Server closed
}
