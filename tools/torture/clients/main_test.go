package clients_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

func TestMain(m *testing.M) { clients.Tests(m, begin) }

// trait is the zone of a client here, and says what it does.
type trait = string

const (
	fails    trait = "fails"
	leaks    trait = "leaks"
	stubborn trait = "stubborn" // does not stop
)

func begin(p *clients.Process) (end func(bool) error, err error) {
	switch p.Zone {
	case fails:
		return nil, errors.New("the trait says so")
	case leaks:
		go func() { select {} }()
	}
	p.Append(history.Record{Kind: "start", Text: fmt.Sprint(p.Zone, p.Life, " ", p.Number)})
	return func(conclude bool) error {
		if p.Zone == stubborn {
			select {}
		}
		if conclude {
			p.Append(history.Record{Kind: "conclude"})
		}
		return nil
	}, nil
}
