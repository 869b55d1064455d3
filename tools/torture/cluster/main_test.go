package cluster_test

import (
	"testing"

	"github.com/tenure-dev/tenure/tools/torture/clients"
)

func TestMain(m *testing.M) { clients.Tests(m, nil) }
