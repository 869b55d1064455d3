package web

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
)

type told struct{ text string }

func (t told) String() string { return t.text }

// Whatever is put into markup is escaped, of any type, unless it is markup.
func TestMarkupEscapes(t *testing.T) {
	const hostile = `<b a="x" c='y'>&amp;` + "\x00\xff"
	const inert = "&lt;b a=&#34;x&#34; c=&#39;y&#39;&gt;&amp;amp;\uFFFD\uFFFD"
	for _, is := range []any{hostile, admin.Outcome(hostile), fmt.Errorf("%s", hostile), told{hostile}} {
		require.Equal(t, markup(`<i title="`+inert+`">`), m(`<i title="%s">`, is), "%T", is)
	}
	require.Equal(t, markup("<b>1 2.5 18446744073709551615</b>"), m("%s%d %.1f %d%s", markup("<b>"), 1, 2.5, uint64(1<<64-1), markup("</b>")))
	require.Contains(t, num("Took", hostile), ">"+inert+"<")
	require.Equal(t, `job?a=%22%3E%3C%26&b=x`, query("job", "b", "x", "c", "", "a", `"><&`))
	require.Equal(t, markup(`<a class="do" data-do="pause" href="order?job=%22&amp;kind=pause">P</a>`), do("pause", "P", "job", `"`))
}
