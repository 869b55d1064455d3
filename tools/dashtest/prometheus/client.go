package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Client asks a Prometheus over its HTTP API
// (https://prometheus.io/docs/prometheus/latest/querying/api/). It may be used concurrently.
type Client struct {
	URL  string // such as http://127.0.0.1:9090
	HTTP *http.Client
}

// Series is one series of an answer.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Rule is a rule as Prometheus evaluates it.
type Rule struct {
	Name      string `json:"name"`
	Type      string `json:"type"` // recording or alerting
	State     string `json:"state"`
	Health    string `json:"health"`
	LastError string `json:"lastError"`
	Query     string `json:"query"`
}

// Target is what is scraped.
type Target struct {
	URL       string `json:"scrapeUrl"`
	Health    string `json:"health"`
	LastError string `json:"lastError"`
}

// APIError is what Prometheus said of a request that it refused.
type APIError struct {
	Status int
	Type   string // such as bad_data, for an expression that cannot be parsed
	Text   string
}

func (e *APIError) Error() string {
	return fmt.Sprintf("prometheus: %s (%s, HTTP %d)", e.Text, e.Type, e.Status)
}

// QueryRange evaluates an expression at every step from start to end.
func (c *Client) QueryRange(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]Series, error) {
	return c.query(ctx, "query_range", url.Values{
		"query": {expr}, "start": {unix(start)}, "end": {unix(end)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
}

// Query evaluates an expression at one time.
func (c *Client) Query(ctx context.Context, expr string, at time.Time) ([]Series, error) {
	return c.query(ctx, "query", url.Values{"query": {expr}, "time": {unix(at)}})
}

// Series returns the labels of all series that match the selector between start and end.
func (c *Client) Series(ctx context.Context, selector string, start, end time.Time) ([]map[string]string, error) {
	var labels []map[string]string
	err := c.get(ctx, "series", url.Values{"match[]": {selector}, "start": {unix(start)}, "end": {unix(end)}}, &labels)
	return labels, err
}

// LabelValues returns the values of a label, of the series that match the selector if there is one.
func (c *Client) LabelValues(ctx context.Context, label, selector string, start, end time.Time) ([]string, error) {
	values := url.Values{"start": {unix(start)}, "end": {unix(end)}}
	if selector != "" {
		values.Set("match[]", selector)
	}
	var found []string
	err := c.get(ctx, "label/"+url.PathEscape(label)+"/values", values, &found)
	return found, err
}

// Rules returns all rules.
func (c *Client) Rules(ctx context.Context) ([]Rule, error) {
	var data struct {
		Groups []struct {
			Rules []Rule `json:"rules"`
		} `json:"groups"`
	}
	if err := c.get(ctx, "rules", nil, &data); err != nil {
		return nil, err
	}
	var rules []Rule
	for _, g := range data.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules, nil
}

// Targets returns what is scraped.
func (c *Client) Targets(ctx context.Context) ([]Target, error) {
	var data struct {
		Active []Target `json:"activeTargets"`
	}
	err := c.get(ctx, "targets", url.Values{"state": {"active"}}, &data)
	return data.Active, err
}

func unix(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

func (c *Client) query(ctx context.Context, path string, values url.Values) ([]Series, error) {
	var data struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	}
	if err := c.get(ctx, path, values, &data); err != nil {
		return nil, err
	}
	return parse(data.Type, data.Result)
}

// get asks for a path under /api/v1 and reads the data of the answer.
func (c *Client) get(ctx context.Context, path string, values url.Values, data any) error {
	address := c.URL + "/api/v1/" + path + "?" + values.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("prometheus: %w", err)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("prometheus: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Status    string          `json:"status"`
		Data      json.RawMessage `json:"data"`
		ErrorType string          `json:"errorType"`
		Error     string          `json:"error"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("prometheus: the answer to %s (HTTP %d) is not JSON: %w", path, resp.StatusCode, err)
	}
	if answer.Status != "success" {
		return &APIError{Status: resp.StatusCode, Type: answer.ErrorType, Text: answer.Error}
	}
	if err := json.Unmarshal(answer.Data, data); err != nil {
		return fmt.Errorf("prometheus: the answer to %s cannot be read: %w", path, err)
	}
	return nil
}
