package health_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/health"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A replica that leads or waits to lead, and needs a database besides.
func ExampleNew() {
	fleet, err := redlocktest.New(3)
	if err != nil {
		panic(err)
	}
	defer fleet.Close()
	q, err := redlock.Open(fleet.URLs())
	if err != nil {
		panic(err)
	}
	defer q.Close()
	e, err := elector.New(q, "poller")
	if err != nil {
		panic(err)
	}
	h := health.New(q, e, health.Check("database", func(context.Context) error { return nil }))

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- e.Run(ctx, func(ctx context.Context, _ *elector.Term) error {
			show(h, "/readyz")
			h.Stop() // on SIGTERM
			show(h, "/readyz")
			show(h, "/livez")
			cancel()
			return nil
		})
	}()
	if err := <-ended; err != nil {
		panic(err)
	}
	// Output:
	// /readyz 200: ok
	// /readyz 503: [-]shutting down
	// readyz check failed
	// /livez 200: ok
}

// show probes. A program serves the Handler instead:
//
//	http.Handle("/livez", h)
//	http.Handle("/readyz", h)
func show(h *health.Handler, path string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	fmt.Printf("%s %d: %s", path, w.Code, w.Body)
}
