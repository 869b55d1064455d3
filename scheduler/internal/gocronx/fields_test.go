package gocronx

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// If this fails, gocron was updated to a version that keeps what its options set elsewhere. Look at
// internalJob, scheduler, executor and addOrUpdateJob in its sources; correct the paths and types
// of jobFields and schedulerFields, and Version; and run the tests of this package, which read each
// option and run jobs with the new version. If a Reader's NewJob hangs, gocron has begun to need
// its goroutine after Shutdown.
func TestGocronHasTheFieldsThatAreRead(t *testing.T) {
	require.NoError(t, Check())
}

// fake is a struct as gocron has one, with one path changed.
func fake(fields reflect.Type, changed int, change func(*reflect.StructField)) reflect.Type {
	type node struct {
		name     string
		of       reflect.Type
		changed  bool
		children []*node
	}
	root := &node{}
	for i := range fields.NumField() {
		at := root
		for name := range strings.SplitSeq(fields.Field(i).Tag.Get("gocron"), ".") {
			var next *node
			for _, c := range at.children {
				if c.name == name {
					next = c
				}
			}
			if next == nil {
				next = &node{name: name}
				at.children = append(at.children, next)
			}
			at = next
		}
		at.of, at.changed = fields.Field(i).Type, i == changed
	}
	var build func(*node) reflect.Type
	build = func(n *node) reflect.Type {
		if n.children == nil {
			return n.of
		}
		var all []reflect.StructField
		for _, c := range n.children {
			f := reflect.StructField{Name: c.name, PkgPath: "github.com/go-co-op/gocron/v2", Type: build(c)}
			if c.changed {
				change(&f)
			}
			all = append(all, f)
		}
		if s := reflect.StructOf(all); n != root && n.name != "exec" {
			return reflect.PointerTo(s) // as limitRunsTo is
		} else {
			return s
		}
	}
	return build(root)
}

func TestOtherGocronIsRefused(t *testing.T) {
	for name, fields := range map[string]reflect.Type{"job": reflect.TypeFor[jobFields](), "scheduler": reflect.TypeFor[schedulerFields]()} {
		_, err := newLayout(fake(fields, -1, nil), fields)
		require.NoError(t, err, "%s: the fake itself", name)
		for i := range fields.NumField() {
			path := fields.Field(i).Tag.Get("gocron")
			for what, change := range map[string]func(*reflect.StructField){
				"renamed":      func(f *reflect.StructField) { f.Name += "2" },
				"of an int":    func(f *reflect.StructField) { f.Type = reflect.TypeFor[int]() },
				"of a pointer": func(f *reflect.StructField) { f.Type = reflect.PointerTo(f.Type) },
			} {
				_, err := newLayout(fake(fields, i, change), fields)
				require.ErrorContains(t, err, "."+path+" of type "+fields.Field(i).Type.String(), "%s %s", path, what)
				require.NotContains(t, err.Error(), ", no ", "one alone is named")
				require.ErrorContains(t, err, "use gocron v2.22.0 (go get github.com/go-co-op/gocron/v2@v2.22.0)")
			}
		}
	}
	_, err := newLayout(reflect.TypeFor[struct{ parentCtx int }](), reflect.TypeFor[jobFields]())
	require.ErrorContains(t, err, ".limitRunsTo.limit of type uint")
}
