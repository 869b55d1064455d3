package main

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProgram(t *testing.T) {
	var out, errOut bytes.Buffer
	require.Equal(t, 0, run(t.Context(), &out, &errOut), "%s\n%s", out.String(), errOut.String())
	require.Empty(t, errOut.String())
	require.Equal(t, anonymous(documented(t, "console")[0]), anonymous("$ go run ./examples/fencing\n"+out.String()),
		"the document shows what the program prints")
}

func TestProgramThatCannotTellTheStory(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	require.Equal(t, 1, run(ctx, &out, &errOut))
	require.Contains(t, errOut.String(), context.Canceled.Error())
}

// The story fails when the stores do otherwise than it says.
func TestStoryIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		checks, told bool // whether the stores check tokens, and whether the story says so
		want         string
	}{
		"a late write that is not refused":  {checks: false, told: true, want: "A's late write was not refused (SQLite)"},
		"a late write that is not accepted": {checks: true, told: false, want: "A's late write failed (SQLite)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := redlocktest.Start(t, 3)
			stage, err := openStage(t.Context(), tc.checks, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			defer func() { require.NoError(t, stage.close()) }()
			var out bytes.Buffer
			err = (&story{out: &out, nodes: nodes.URLs(), stores: stage.stores, guard: tc.told}).tell(t.Context())
			require.ErrorContains(t, err, tc.want, out.String())
		})
	}
}

// slowStore calls before at its n-th claim.
type slowStore struct {
	store
	n      int
	before func()
}

func (s *slowStore) claim(ctx context.Context, id string, token uint64) (int64, error) {
	if s.n--; s.n == 0 {
		s.before()
	}
	return s.store.claim(ctx, id, token)
}

// On a slow machine the lease may be over before A asks. Then A does not write, and the story
// begins again.
func TestLeaseLostBeforeAAsks(t *testing.T) {
	nodes := redlocktest.Start(t, 3)
	a, err := newHolder("A", nodes.URLs())
	require.NoError(t, err)
	defer a.quorum.Close()
	slow := &slowStore{store: openTest(t, filepath.Join(t.TempDir(), "accounts.db")), n: 2, before: func() {
		a.lease.StopExtending()
		<-a.lease.Context().Done()
	}}
	var out bytes.Buffer
	s := &story{out: &out, nodes: nodes.URLs(), stores: []namedStore{{"slow", slow}}, guard: true}
	late, err := s.begin(t.Context(), a)
	require.NoError(t, err)
	defer late.abandon()
	require.Regexp(t, `lost the lease too early, and acquires it again: token [0-9]{16}\n(.*\n)*.*stands still`, out.String())
	requireBalance(t, slow, accountID, firstDeposit)
}
