package main

import (
	"encoding/json"
	"errors"
	"sync"

	"syscall/js"

	"github.com/tenure-dev/tenure/examples/demo/internal/demo"
	"github.com/tenure-dev/tenure/examples/demo/internal/service"
)

// stage starts the replicas, which are instances of this module, and passes on their reports.
type stage struct {
	api     js.Value
	running sync.Map // instances by number
}

// instance is the instance of a replica.
type instance struct {
	report func(service.Report)
	exited func(error)
}

// newStage returns a stage that takes the host's news of instances. A goroutine handles them in
// order, because a function that JavaScript calls must not wait.
func newStage(api js.Value) *stage {
	s := &stage{api: api}
	news := make(chan func(), backlog)
	hear := func(name string, do func(number any, i *instance, text string)) {
		api.Set(name, js.FuncOf(func(_ js.Value, args []js.Value) any {
			number, text := args[0].Int(), args[1].String()
			news <- func() {
				if i, runs := s.running.Load(number); runs {
					do(number, i.(*instance), text)
				}
			}
			return nil
		}))
	}
	hear("reported", func(_ any, i *instance, text string) {
		var r service.Report
		if err := json.Unmarshal([]byte(text), &r); err == nil {
			i.report(r)
		}
	})
	hear("exited", func(number any, i *instance, why string) {
		s.running.Delete(number)
		var err error
		if why != "" {
			err = errors.New(why)
		}
		i.exited(err)
	})
	go func() { // for as long as the page is open
		for do := range news {
			do()
		}
	}()
	return s
}

// launch implements demo.Config.Launch.
func (s *stage) launch(settings service.Settings, report func(service.Report), exited func(error)) (demo.Process, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	number := s.api.Call("launch", string(text)).Int() // the instance starts to run later
	s.running.Store(number, &instance{report, exited})
	return func(do string) { s.api.Call(do, number) }, nil
}
