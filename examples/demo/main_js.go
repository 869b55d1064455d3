package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"

	"syscall/js"

	"github.com/tenure-dev/tenure/examples/demo/internal/demo"
	"github.com/tenure-dev/tenure/examples/demo/internal/service"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// main runs one instance of the module: a replica if the host has settings for it, or else the
// director.
func main() {
	slog.SetLogLoggerLevel(slog.LevelError) // the page shows the events
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

// serve runs a replica. It returns when the host calls stop.
func serve(api js.Value, text string) error {
	var s service.Settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	api.Set("stop", js.FuncOf(func(js.Value, []js.Value) any { cancel(); return nil }))
	wires := newWires(api)
	dial := func(node int) net.Conn { return wires.open(api.Call("dial", s.Number, node).Int()) }
	return service.Serve(ctx, s, dial, func(r service.Report) {
		line, err := json.Marshal(r)
		if err != nil {
			panic(err) // JSON can encode every Report
		}
		api.Call("report", string(line))
	})
}

// direct runs the director, which has the nodes and the demonstration. It runs until the page is
// closed.
func direct(api js.Value) error {
	fleet, err := redlocktest.NewPipes(5)
	if err != nil {
		return err
	}
	d := demo.New(demo.Config{Fleet: fleet, Launch: newStage(api).launch, Speed: func(factor float64) { api.Call("speed", factor) }})
	wires := newWires(api)
	api.Set("accept", js.FuncOf(func(_ js.Value, args []js.Value) any {
		go d.Serve(wires.open(args[0].Int()), args[1].Int(), args[2].Int())
		return nil
	}))
	api.Set("order", js.FuncOf(func(_ js.Value, args []js.Value) any {
		go answer(api, d, args[0], args[1].String())
		return nil
	}))
	api.Set("flush", js.FuncOf(func(js.Value, []js.Value) any {
		for _, m := range d.Messages() {
			api.Call("publish", string(m))
		}
		return nil
	}))
	return d.Run(context.Background())
}

// answer carries out an order and sends the result.
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
