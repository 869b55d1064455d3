package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"time"

	"syscall/js"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/examples/internal/demo"
	"github.com/tenure-dev/tenure/examples/internal/demo/service"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

const (
	replicas = 3
	nodes    = 5
	ttl      = 3 * time.Second
)

// main is an instance of the module: the director, or a replica if the host has settings for it.
func main() {
	slog.SetLogLoggerLevel(slog.LevelError) // the page shows what happens
	api := js.Global().Get("tenure").Get(os.Getenv("TENURE_INSTANCE"))
	var err error
	if settings := api.Get("settings"); settings.Type() == js.TypeString {
		err = serve(api, settings.String())
	} else {
		err = direct(api)
	}
	if err != nil {
		println("demo:", err.Error())
		os.Exit(1)
	}
}

// serve is a replica.
func serve(api js.Value, text string) error {
	var s service.Settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	api.Set("stop", js.FuncOf(func(js.Value, []js.Value) any { cancel(); return nil }))
	wires := newWires(api)
	dial := func(_ context.Context, node int) (net.Conn, error) {
		conn := wires.open(api.Call("dial").Int())
		if _, err := conn.Write(demo.Greeting(s.Number, node)); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
	return service.Serve(ctx, s, dial, func(r service.Report) {
		line, err := json.Marshal(r)
		if err != nil {
			panic(err) // a Report has nothing that JSON lacks
		}
		api.Call("report", string(line))
	})
}

// direct is the director: it has the nodes, and the demonstration itself. It runs until the page is
// closed.
func direct(api js.Value) error {
	fleet, err := redlocktest.NewPipes(nodes)
	if err != nil {
		return err
	}
	stage := newStage(api)
	d := demo.New(demo.Config{
		Where: demo.Browser, Replicas: replicas, Fleet: fleet, Hosts: hosts(fleet),
		Service: service.Settings{Prefix: "quickstart", Nodes: fleet.URLs(), TTL: ttl, Elect: true, Gate: true, Job: "quickstart"},
		Dial:    func(ctx context.Context, node int) (net.Conn, error) { return fleet.Node(node - 1).Dial(ctx) },
		Observe: func(s service.Settings) (*redlock.Quorum, error) {
			options := append(s.QuorumOptions(), redlock.WithIdentity("the demonstration"),
				redlock.WithClientOption(func(url string, o *valkey.ClientOption) { fleet.ClientOption(url, o) }))
			return redlock.Open(s.Nodes, options...)
		},
		Launch: stage.launch,
		Speed: func(factor float64) error {
			api.Call("speed", factor)
			return nil
		},
	})
	wires := newWires(api)
	api.Set("accept", js.FuncOf(func(_ js.Value, args []js.Value) any {
		conn := wires.open(args[0].Int())
		go d.Serve(conn)
		return nil
	}))
	api.Set("order", js.FuncOf(func(_ js.Value, args []js.Value) any {
		go answer(api, d, args[0], args[1].String())
		return nil
	}))
	revision := uint64(0)
	api.Set("flush", js.FuncOf(func(js.Value, []js.Value) any {
		messages, now, _ := d.Since(revision)
		revision = now
		for _, m := range messages {
			api.Call("publish", string(m))
		}
		return nil
	}))
	return d.Run(context.Background())
}

// answer carries out an order, and answers it.
func answer(api js.Value, d *demo.Demo, id js.Value, text string) {
	var o demo.Order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = d.Do(o)
	}
	if err != nil {
		api.Call("answered", id, err.Error())
		return
	}
	api.Call("answered", id, "")
}

func hosts(fleet *redlocktest.Fleet) (hosts []string) {
	for range fleet.Nodes() {
		hosts = append(hosts, "in this page")
	}
	return hosts
}
