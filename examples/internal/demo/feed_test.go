package demo

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// types are those of messages.
func types(t *testing.T, messages [][]byte) (types []string) {
	t.Helper()
	for _, m := range messages {
		var head struct{ Type string }
		require.NoError(t, json.Unmarshal(m, &head))
		types = append(types, head.Type)
	}
	return types
}

// A reader that is slow is told of the last version of everything, and of nothing twice.
func TestFeed(t *testing.T) {
	f := newFeed()
	require.True(t, f.state(State{Type: "state", Now: 1}, false))
	i := f.add(Item{Kind: KindRun})
	f.line(Info, "hello")
	messages, revision, more := f.since(0)
	require.Equal(t, []string{"state", "item", "line"}, types(t, messages))

	require.False(t, f.state(State{Type: "state", Now: 2}, false), "only its time is another one")
	select {
	case <-more:
		t.Fatal("there is nothing new")
	default:
	}
	i.End = "released"
	f.changed(i)
	f.changed(i)
	<-more
	messages, revision, _ = f.since(revision)
	require.Equal(t, []string{"item"}, types(t, messages))
	require.Contains(t, string(messages[0]), `"end":"released"`)
	messages, _, _ = f.since(revision)
	require.Empty(t, messages)
}

func TestFeedIsBounded(t *testing.T) {
	f := newFeed()
	for range maxItems + 10 {
		f.add(Item{From: at(0)})
	}
	for range maxLines + 10 {
		f.line(Info, "again")
	}
	f.items[20].value.To = at(1)
	f.forget(begin.Add(keepItems + time.Minute))
	require.Len(t, f.items, maxItems)
	require.Len(t, f.byID, maxItems)
	require.Len(t, f.lines, maxLines)
}
