package telemetry_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// tree draws spans as text: a trace after the other, each span below its parent, with when it
// began, in milliseconds from the first span, how long it took, its attributes, and the spans that
// it is linked to by number.
func tree(spans []*tracepb.Span) string {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b *tracepb.Span) int { return cmp.Compare(a.GetStartTimeUnixNano(), b.GetStartTimeUnixNano()) })
	known, children := make(map[string]bool), make(map[string][]*tracepb.Span)
	for _, s := range spans {
		known[string(s.GetSpanId())] = true
	}
	for _, s := range spans {
		parent := string(s.GetParentSpanId())
		if !known[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	numbers := make(map[string]int)
	var number func(parent string)
	number = func(parent string) {
		for _, s := range children[parent] {
			numbers[string(s.GetSpanId())] = len(numbers) + 1
			number(string(s.GetSpanId()))
		}
	}
	number("")
	var text strings.Builder
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		for _, s := range children[parent] {
			id := string(s.GetSpanId())
			fmt.Fprintf(&text, "%s#%d %s (%s) at %s for %s", indent, numbers[id], s.GetName(),
				strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")),
				millis(s.GetStartTimeUnixNano()-spans[0].GetStartTimeUnixNano()), millis(s.GetEndTimeUnixNano()-s.GetStartTimeUnixNano()))
			if status := s.GetStatus(); status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
				fmt.Fprintf(&text, " ERROR %q", status.GetMessage())
			}
			for _, link := range s.GetLinks() {
				fmt.Fprintf(&text, " -> #%d", numbers[string(link.GetSpanId())])
			}
			var words []string
			for key, value := range attributes(s) {
				words = append(words, key+"="+value)
			}
			slices.Sort(words)
			fmt.Fprintf(&text, "\n%s   %s\n", indent, strings.Join(words, " "))
			draw(id, indent+"   ")
		}
	}
	draw("", "")
	return text.String()
}

// attributes are a span's attributes as text.
func attributes(s *tracepb.Span) map[string]string {
	all := make(map[string]string)
	for _, a := range s.GetAttributes() {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *commonpb.AnyValue_BoolValue:
			all[a.GetKey()] = strconv.FormatBool(v.BoolValue)
		case *commonpb.AnyValue_IntValue:
			all[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		case *commonpb.AnyValue_DoubleValue:
			all[a.GetKey()] = strconv.FormatFloat(v.DoubleValue, 'g', 5, 64)
		}
	}
	return all
}

func millis(nanoseconds uint64) string {
	return strconv.FormatFloat(float64(nanoseconds)/1e6, 'f', 2, 64) + " ms"
}
