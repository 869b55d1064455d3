package rival

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentCounts(t *testing.T) {
	var stream strings.Builder
	words := []string{"GET", "", "*1\r\n$4\r\nPING\r\n", "x\n*\n"}
	for range 5 {
		fmt.Fprintf(&stream, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(&stream, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	text := stream.String()
	for size := 1; size <= len(text); size++ { // however it is cut
		s := &Sent{}
		c := &sentConn{sent: s}
		for from := 0; from < len(text); from += size {
			c.read([]byte(text[from:min(from+size, len(text))]))
		}
		require.EqualValues(t, 5, s.Commands(), "in pieces of %d bytes", size)
	}
}
