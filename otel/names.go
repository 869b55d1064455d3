package tenureotel

import (
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// names keeps a T for each name: attribute sets, and observed state. It is bounded, because a
// program may make up names as it runs. Names beyond the limit share the T of OtherLeases, also for
// elections, jobs, nodes and words.
type names[T any] struct {
	limit  int
	create func(name string) *T
	made   func(*T) // is told of each T, without the lock, because instruments are foreign code; nil for nothing

	mu    sync.RWMutex
	known map[string]*T // guarded by mu
}

func newNames[T any](limit int, create func(name string) *T) *names[T] {
	return &names[T]{limit: limit, create: create, known: make(map[string]*T)}
}

// get returns the T of a name, and makes it if there is none. Names that are equal as valid UTF-8
// share it.
func (n *names[T]) get(name string) *T {
	name = text(name)
	n.mu.RLock()
	t := n.find(name)
	n.mu.RUnlock()
	if t != nil {
		return t
	}
	n.mu.Lock()
	if t = n.find(name); t != nil {
		n.mu.Unlock()
		return t
	}
	if len(n.known) >= n.limit {
		name = OtherLeases
	}
	t = n.create(name)
	n.known[name] = t
	n.mu.Unlock()
	if n.made != nil {
		n.made(t)
	}
	return t
}

// find returns the T of a name, or nil if it is still to be made. Called with mu held, at least for
// reading.
func (n *names[T]) find(name string) *T {
	if t := n.known[name]; t != nil || len(n.known) < n.limit {
		return t
	}
	return n.known[OtherLeases]
}

// all returns every T that has been made so far.
func (n *names[T]) all() []*T {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.Collect(maps.Values(n.known))
}

// series is an attribute set, as the option of each kind of measurement.
type series struct {
	attributes []attribute.KeyValue // appended to by copying
	record     []metric.RecordOption
	add        []metric.AddOption
	observe    []metric.ObserveOption
}

func newSeries(attributes ...attribute.KeyValue) *series {
	// NewSet sorts its argument in place, so it gets a copy.
	set := metric.WithAttributeSet(attribute.NewSet(slices.Clone(attributes)...))
	return &series{slices.Clip(attributes), []metric.RecordOption{set}, []metric.AddOption{set}, []metric.ObserveOption{set}}
}

// byWord keeps a series for each of a few words: base and the attributes of the word.
func byWord(base []attribute.KeyValue, attributes func(word string) []attribute.KeyValue) *names[series] {
	return newNames(maxWords, func(word string) *series { return newSeries(slices.Concat(base, attributes(word))...) })
}
