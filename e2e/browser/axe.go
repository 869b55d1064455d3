package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// AxeFile is the path of axe-core in the repository, where scripts/install.sh puts it.
const AxeFile = "bin/axe/axe.min.js"

// Violation is a rule of accessibility that a page breaks, as axe-core reports it.
type Violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"` // minor, moderate, serious or critical
	Text   string `json:"text"`   // the rule, and each element that breaks it
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s", v.Impact, v.Text) }

// Serious reports whether the violation keeps people from using the page.
func (v Violation) Serious() bool { return v.Impact == "serious" || v.Impact == "critical" }

// Axe checks the page with axe-core, for WCAG 2.2 AA and good practice.
func (p *Page) Axe() []Violation {
	p.tb.Helper()
	file := filepath.Join(Root(p.tb), AxeFile)
	source, err := os.ReadFile(file)
	require.NoError(p.tb, err, "`scripts/install.sh axe` installs it")
	// The script is evaluated over the debugging protocol, so the page's content security policy
	// stays as it is.
	p.Exec("if (!globalThis.axe) {" + string(source) + "\n}")
	return Value[[]Violation](p, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => ({id: v.id, impact: v.impact,
		text: v.help + " (" + v.id + ")" + v.nodes.map(n => ("\n" + n.html + "\n\t" + n.failureSummary.replaceAll("\n", "\n\t")).replaceAll("\n", "\n\t")).join("")})))`)
}

// Usable fails the test if axe-core finds a serious violation. It logs the other violations.
func (p *Page) Usable(where string) {
	p.tb.Helper()
	for _, v := range p.Axe() {
		if v.Serious() {
			p.tb.Errorf("%s: %s", where, v)
		} else {
			p.tb.Logf("%s: %s", where, v)
		}
	}
}

// Root returns the top directory of the repository, for a test of a package of this module.
func Root(tb testing.TB) string {
	tb.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(tb, err)
	require.FileExists(tb, filepath.Join(root, "go.work"), "this is not in a checkout of the repository")
	return root
}
