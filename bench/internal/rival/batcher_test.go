package rival

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// An operation is decided by the quorum-th reply, or when there are too many errors for one, in
// whatever order they come.
func TestBallot(t *testing.T) {
	failed := errors.New("failed")
	for _, tt := range []struct {
		name    string
		answers []error // all but the last decide nothing
		want    error
	}{
		{"replies", []error{nil, nil}, nil},
		{"an error first", []error{failed, nil, nil}, nil},
		{"an error between", []error{nil, failed, nil}, nil},
		{"errors", []error{failed, failed}, failed},
		{"a reply between", []error{failed, nil, failed}, failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := newBallot("k", false, 3)
			for i, err := range tt.answers {
				require.Empty(t, v.decided, "after %d answers", i)
				v.count(err)
			}
			require.Len(t, v.decided, 1)
			require.Equal(t, tt.want, <-v.decided)
		})
	}
}
