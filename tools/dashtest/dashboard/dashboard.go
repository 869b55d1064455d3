// Package dashboard reads a Grafana dashboard's JSON: what it asks a Prometheus, how it is laid
// out, and what is wrong with it as far as the file alone tells.
package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
)

// Dashboard is the part of a dashboard's JSON model that this module uses.
type Dashboard struct {
	UID           string          `json:"uid"`
	ID            *int            `json:"id"`
	Title         string          `json:"title"`
	SchemaVersion int             `json:"schemaVersion"`
	Inputs        json.RawMessage `json:"__inputs"`
	Requires      json.RawMessage `json:"__requires"`
	Panels        []Panel         `json:"panels"`
	Templating    struct {
		List []Variable `json:"list"`
	} `json:"templating"`
}

// Panel is a panel, or a row.
type Panel struct {
	ID          int         `json:"id"`
	Type        string      `json:"type"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Datasource  *Datasource `json:"datasource"`
	Grid        Grid        `json:"gridPos"`
	Field       FieldConfig `json:"fieldConfig"`
	Targets     []Target    `json:"targets"`
	Panels      []Panel     `json:"panels"` // of a collapsed row
}

// Datasource refers to a data source, or to a variable that holds one.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Grid is a place on the grid of 24 columns.
type Grid struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// FieldConfig tells how values are shown.
type FieldConfig struct {
	Defaults Field `json:"defaults"`
}

// Field is the part of a field's configuration that is checked.
type Field struct {
	Unit string `json:"unit"`
}

// Target is a query of a panel.
type Target struct {
	RefID      string      `json:"refId"`
	Datasource *Datasource `json:"datasource"`
	Expr       string      `json:"expr"`
	Legend     string      `json:"legendFormat"`
	Instant    bool        `json:"instant"`
}

// Variable is a variable of the dashboard.
type Variable struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	Datasource *Datasource     `json:"datasource"`
	Query      json.RawMessage `json:"query"`
	AllValue   string          `json:"allValue"`
	IncludeAll bool            `json:"includeAll"`
	Multi      bool            `json:"multi"`
}

// Text returns the query of the variable: it is a string, or an object that has one.
func (v Variable) Text() string {
	var text string
	if json.Unmarshal(v.Query, &text) == nil {
		return text
	}
	var object struct {
		Query string `json:"query"`
	}
	if json.Unmarshal(v.Query, &object) == nil {
		return object.Query
	}
	return ""
}

// Read reads a dashboard from a file.
func Read(file string) (*Dashboard, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	d, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w, in %s", err, file)
	}
	return d, nil
}

// Parse parses a dashboard.
func Parse(text []byte) (*Dashboard, error) {
	var d Dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("dashboard: this is no dashboard: %w", err)
	}
	if len(d.All()) == 0 {
		return nil, fmt.Errorf("dashboard: it has no panels")
	}
	return &d, nil
}

// All returns the panels, rows among them, in the order of the file. A collapsed row's panels
// follow it.
func (d *Dashboard) All() []Panel {
	var all []Panel
	for _, p := range d.Panels {
		all = append(all, p)
		all = append(all, p.Panels...)
	}
	return all
}

// Variables returns the variables that are queries.
func (d *Dashboard) Variables() []Variable {
	var queries []Variable
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			queries = append(queries, v)
		}
	}
	return queries
}
