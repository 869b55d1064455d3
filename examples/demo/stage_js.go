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
	api js.Value

	mu      sync.Mutex
	running map[int]*instance // guarded by mu
}

// instance is the instance of a replica. A goroutine handles its news in order, because a function
// that JavaScript calls must not wait.
type instance struct {
	number int
	told   chan func()
	report func(service.Report)
	exited func(error)
}

func newStage(api js.Value) *stage {
	s := &stage{api: api, running: make(map[int]*instance)}
	api.Set("reported", js.FuncOf(func(_ js.Value, args []js.Value) any {
		s.tell(args[0].Int(), func(i *instance) {
			var r service.Report
			if err := json.Unmarshal([]byte(args[1].String()), &r); err == nil {
				i.report(r)
			}
		})
		return nil
	}))
	api.Set("exited", js.FuncOf(func(_ js.Value, args []js.Value) any {
		s.tell(args[0].Int(), func(i *instance) {
			s.mu.Lock()
			delete(s.running, i.number)
			s.mu.Unlock()
			var err error
			if why := args[1].String(); why != "" {
				err = errors.New(why)
			}
			i.exited(err)
			close(i.told)
		})
		return nil
	}))
	return s
}

func (s *stage) tell(number int, news func(*instance)) {
	s.mu.Lock()
	i := s.running[number]
	s.mu.Unlock()
	if i != nil {
		i.told <- func() { news(i) }
	}
}

// launch implements demo.Config.Launch.
func (s *stage) launch(settings service.Settings, report func(service.Report), exited func(error)) (demo.Process, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	i := &instance{told: make(chan func(), backlog), report: report, exited: exited}
	s.mu.Lock()
	i.number = s.api.Call("launch", string(text)).Int() // the instance starts to run later
	s.running[i.number] = i
	s.mu.Unlock()
	go func() {
		for news := range i.told {
			news()
		}
	}()
	return func(do string) { s.api.Call(do, i.number) }, nil
}
