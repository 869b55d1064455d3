package clients_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

func TestMain(m *testing.M) { clients.Tests(m, begin) }

// trait is the settings of the clients here.
type trait struct {
	Word     string
	Life     int
	Fails    bool
	Leaks    bool
	Stubborn bool // does not stop
}

func begin(p *clients.Process) (end func() error, err error) {
	var t trait
	if err := p.Settings(&t); err != nil {
		return nil, err
	}
	if t.Fails {
		return nil, errors.New("the trait says so")
	}
	if t.Leaks {
		go func() { select {} }()
	}
	p.Append(history.Record{Kind: "start", Text: fmt.Sprint(t.Word, t.Life, " ", p.Number)})
	p.Conclude = func() error { p.Append(history.Record{Kind: "conclude"}); return nil }
	return func() error {
		if t.Stubborn {
			select {}
		}
		return nil
	}, nil
}
