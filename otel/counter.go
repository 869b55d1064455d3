package tenureotel

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// counter counts the events of one name by a word, such as the reason.
type counter[W ~string] struct {
	of   metric.Int64Counter
	sets map[W]*series
}

// newCounter makes a counter of events with these attributes, and one of these words as key.
func newCounter[W ~string](of metric.Int64Counter, attributes []attribute.KeyValue, key attribute.Key, words ...W) counter[W] {
	c := counter[W]{of, make(map[W]*series)}
	for _, word := range words {
		c.sets[word] = newSeries(append(slices.Clip(attributes), key.String(string(word)))...)
	}
	return c
}

// zero adds zero for each of the words, so that its series exists.
func (c counter[W]) zero(words ...W) {
	for _, word := range words {
		c.of.Add(context.Background(), 0, c.sets[word].add...)
	}
}

// add counts events. Those of a word that the counter does not have are not counted.
func (c counter[W]) add(ctx context.Context, word W, n int) {
	if set := c.sets[word]; set != nil && c.of.Enabled(ctx) {
		c.of.Add(ctx, int64(n), set.add...)
	}
}

// announce has zero add zero to counters: now, and once more when the states are first observed,
// because the meter provider may be set only after this call.
func (i *Instrumentation) announce(zero func()) {
	i.announcing.Lock()
	if !i.observed {
		i.announced = append(i.announced, zero)
	}
	i.announcing.Unlock()
	zero()
}

// announceAgain calls the functions that announce got before the first call of announceAgain.
func (i *Instrumentation) announceAgain() {
	i.announcing.Lock()
	again := i.announced
	i.announced, i.observed = nil, true
	i.announcing.Unlock()
	for _, zero := range again {
		zero()
	}
}
