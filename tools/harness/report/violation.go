package report

import (
	"fmt"
	"slices"
)

// Kind says which promise was broken.
type Kind string

// Violation is something that must not happen. Checkers find them.
type Violation struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// Violations are all that were found.
type Violations []Violation

// Add adds one.
func (v *Violations) Add(kind Kind, format string, args ...any) {
	*v = append(*v, Violation{kind, fmt.Sprintf(format, args...)})
}

// Count is how many there are of some kinds.
func (v Violations) Count(kinds ...Kind) int {
	n := 0
	for _, x := range v {
		if slices.Contains(kinds, x.Kind) {
			n++
		}
	}
	return n
}
