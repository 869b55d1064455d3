package dashboard

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Interpolation replaces variables as Grafana does before it asks Prometheus.
type Interpolation struct {
	Range    time.Duration       // from the dashboard's first instant to its last
	Interval time.Duration       // between two points of a series
	Scrape   time.Duration       // the data source's scrape interval
	Values   map[string][]string // what is selected, by variable
}

// variable matches $name, ${name}, ${name:format} and [[name]].
var variable = regexp.MustCompile(`\$(\w+)|\$\{(\w+)(?::\w+)?\}|\[\[(\w+)\]\]`)

// Expand replaces all variables of an expression. One that is not known is an error; Grafana would
// leave it as it is.
func (i Interpolation) Expand(expr string) (string, error) {
	var unknown []string
	expanded := variable.ReplaceAllStringFunc(expr, func(match string) string {
		name := variableName(match)
		value, ok := i.value(name)
		if !ok {
			unknown = append(unknown, match)
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("dashboard: nobody sets %s in %s", strings.Join(unknown, ", "), expr)
	}
	return expanded, nil
}

func variableName(match string) string {
	groups := variable.FindStringSubmatch(match)
	return groups[1] + groups[2] + groups[3]
}

func (i Interpolation) value(name string) (string, bool) {
	switch name {
	case "__rate_interval":
		return Duration(i.RateInterval()), true
	case "__interval":
		return Duration(i.Interval), true
	case "__range":
		return strconv.Itoa(int(i.Range.Round(time.Second).Seconds())) + "s", true
	case "__range_s":
		return strconv.Itoa(int(i.Range.Round(time.Second).Seconds())), true
	}
	values, ok := i.Values[name]
	return alternatives(values), ok
}

// RateInterval is $__rate_interval: wide enough for four scrapes, and for one more than there are
// between two points
// (https://grafana.com/docs/grafana/latest/datasources/prometheus/template-variables/).
func (i Interpolation) RateInterval() time.Duration { return max(i.Interval+i.Scrape, 4*i.Scrape) }

// Duration is a duration as PromQL has it.
func Duration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.Itoa(int(d/time.Second)) + "s"
	}
	return strconv.Itoa(int(d/time.Millisecond)) + "ms"
}

// regexpSpecial are the characters that Grafana escapes in a value; twice, because the value is in
// a PromQL string.
var regexpSpecial = regexp.MustCompile(`[$^*{}\[\]'+?.()|]`)

// alternatives is the regular expression for the values that were selected.
func alternatives(values []string) string {
	escaped := slices.Clone(values)
	for i, v := range escaped {
		escaped[i] = regexpSpecial.ReplaceAllString(strings.ReplaceAll(v, `\`, `\\\\`), `\\$0`)
	}
	if len(escaped) == 1 {
		return escaped[0]
	}
	return "(" + strings.Join(escaped, "|") + ")"
}

// labelValues matches label_values(label) and label_values(selector, label).
var labelValues = regexp.MustCompile(`^label_values\((?:(.+),\s*)?(\w+)\)$`)

// LabelValues takes a variable's query apart. The selector is empty if the query has none.
func LabelValues(query string) (selector, label string, err error) {
	match := labelValues.FindStringSubmatch(query)
	if match == nil {
		return "", "", fmt.Errorf("dashboard: %q is not label_values(selector, label)", query)
	}
	return match[1], match[2], nil
}
