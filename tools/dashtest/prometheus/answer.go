// Package prometheus runs a real Prometheus on a free port of the loopback interface, with the
// repository's configuration, and asks it.
package prometheus

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// sample is [seconds, "value"], as the API has it.
type sample struct{ Point }

func (s *sample) UnmarshalJSON(text []byte) error {
	var pair [2]json.RawMessage
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	var seconds float64
	if err := json.Unmarshal(pair[0], &seconds); err != nil {
		return err
	}
	var value string
	if err := json.Unmarshal(pair[1], &value); err != nil {
		return err
	}
	parsed, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return err
	}
	s.At, s.Value = time.UnixMilli(int64(seconds*1000+.5)), parsed
	return nil
}

// parse reads the result of a query.
func parse(kind string, result json.RawMessage) ([]Series, error) {
	switch kind {
	case "matrix", "vector":
		var list []struct {
			Metric map[string]string `json:"metric"`
			Values []sample          `json:"values"`
			Value  *sample           `json:"value"`
		}
		if err := json.Unmarshal(result, &list); err != nil {
			return nil, fmt.Errorf("prometheus: a %s cannot be read: %w", kind, err)
		}
		all := make([]Series, len(list))
		for i, s := range list {
			all[i].Labels = s.Metric
			if s.Value != nil {
				s.Values = append(s.Values, *s.Value)
			}
			for _, v := range s.Values {
				all[i].Points = append(all[i].Points, v.Point)
			}
		}
		return all, nil
	case "scalar":
		var value sample
		if err := json.Unmarshal(result, &value); err != nil {
			return nil, fmt.Errorf("prometheus: a scalar cannot be read: %w", err)
		}
		return []Series{{Labels: map[string]string{}, Points: []Point{value.Point}}}, nil
	default:
		return nil, fmt.Errorf("prometheus: the result is a %q, which nothing here asks for", kind)
	}
}
