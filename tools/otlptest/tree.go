package otlptest

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Tree draws spans as text: a trace after the other, each span below its parent, with when it
// began, in milliseconds from the first span, how long it took, its attributes, and the spans that
// it is linked to by number.
func Tree(spans []*tracepb.Span) string {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b *tracepb.Span) int { return cmp.Compare(a.GetStartTimeUnixNano(), b.GetStartTimeUnixNano()) })
	d := &drawing{numbers: make(map[string]int), children: make(map[string][]*tracepb.Span)}
	known := make(map[string]bool)
	for _, s := range spans {
		known[id(s.GetSpanId())] = true
	}
	for _, s := range spans {
		parent := id(s.GetParentSpanId())
		if !known[parent] {
			parent = ""
		}
		d.children[parent] = append(d.children[parent], s)
	}
	if len(spans) > 0 {
		d.first = spans[0].GetStartTimeUnixNano()
	}
	d.number("")
	for _, root := range d.children[""] {
		d.draw(root, 0)
	}
	return d.text.String()
}

type drawing struct {
	first    uint64
	numbers  map[string]int
	children map[string][]*tracepb.Span
	text     strings.Builder
}

// number numbers the spans in the order in which they are drawn.
func (d *drawing) number(parent string) {
	for _, s := range d.children[parent] {
		d.numbers[id(s.GetSpanId())] = len(d.numbers) + 1
		d.number(id(s.GetSpanId()))
	}
}

func (d *drawing) draw(s *tracepb.Span, depth int) {
	began := time.Duration(s.GetStartTimeUnixNano() - d.first)
	took := time.Duration(s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano())
	fmt.Fprintf(&d.text, "%s#%d %s (%s) at %s for %s", strings.Repeat("   ", depth), d.numbers[id(s.GetSpanId())], s.GetName(), kind(s.GetKind()), millis(began), millis(took))
	if status := s.GetStatus(); status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		fmt.Fprintf(&d.text, " ERROR %q", status.GetMessage())
	}
	for _, link := range s.GetLinks() {
		if n := d.numbers[id(link.GetSpanId())]; n > 0 {
			fmt.Fprintf(&d.text, " -> #%d", n)
		} else {
			d.text.WriteString(" -> elsewhere")
		}
	}
	d.text.WriteByte('\n')
	var words []string
	for _, a := range s.GetAttributes() {
		words = append(words, a.GetKey()+"="+text(a.GetValue()))
	}
	if len(words) > 0 {
		slices.Sort(words)
		fmt.Fprintf(&d.text, "%s   %s\n", strings.Repeat("   ", depth), strings.Join(words, " "))
	}
	for _, child := range d.children[id(s.GetSpanId())] {
		d.draw(child, depth+1)
	}
}

// Attributes returns a span's attributes as text.
func Attributes(s *tracepb.Span) map[string]string {
	attributes := make(map[string]string)
	for _, a := range s.GetAttributes() {
		attributes[a.GetKey()] = text(a.GetValue())
	}
	return attributes
}

func text(v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_BoolValue:
		return strconv.FormatBool(v.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *commonpb.AnyValue_DoubleValue:
		return strconv.FormatFloat(v.DoubleValue, 'g', 5, 64)
	default:
		return fmt.Sprint(v)
	}
}

func kind(k tracepb.Span_SpanKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "SPAN_KIND_"))
}

func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 2, 64) + " ms"
}

func id(b []byte) string { return hex.EncodeToString(b) }
