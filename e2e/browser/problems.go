package browser

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
)

// problems collects the complaints of a page: errors and warnings of its console, exceptions, and
// violations of its content security policy.
type problems struct {
	mu        sync.Mutex
	found     []string // guarded by mu
	tolerated []string // guarded by mu
}

// tolerate drops complaints that contain a text, now and later.
func (p *problems) tolerate(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tolerated = append(p.tolerated, text)
	p.found = slices.DeleteFunc(p.found, func(found string) bool { return strings.Contains(found, text) })
}

func (p *problems) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.found
	p.found = nil
	return found
}

func (p *problems) add(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(p.tolerated, func(text string) bool { return strings.Contains(found, text) }) {
		p.found = append(p.found, found)
	}
}

func (p *problems) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		p.console(e)
	case *runtime.EventExceptionThrown:
		p.exception(e)
	case *log.EventEntryAdded:
		p.entry(e.Entry)
	case *audits.EventIssueAdded:
		p.issue(e.Issue)
	}
}

func (p *problems) console(e *runtime.EventConsoleAPICalled) {
	if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning && e.Type != runtime.ConsoleAPICalledTypeAssert {
		return
	}
	var words []string
	for _, a := range e.Args {
		words = append(words, string(a.Value)+a.Description)
	}
	p.add("console.%s: %s", e.Type, strings.Join(words, " "))
}

func (p *problems) exception(e *runtime.EventExceptionThrown) {
	text := e.ExceptionDetails.Text
	if x := e.ExceptionDetails.Exception; x != nil {
		text += " " + x.Description
	}
	p.add("exception: %s (%s:%d)", text, e.ExceptionDetails.URL, e.ExceptionDetails.LineNumber+1)
}

func (p *problems) entry(e *log.Entry) {
	if e.Level == log.EntryLevelError || e.Level == log.EntryLevelWarning {
		p.add("%s: %s (%s)", e.Source, e.Text, e.URL)
	}
}

func (p *problems) issue(i *audits.InspectorIssue) {
	if d := i.Details.ContentSecurityPolicyIssueDetails; d != nil {
		p.add("content security policy: %s forbids %s (%s)", d.ViolatedDirective, d.BlockedURL, d.ContentSecurityPolicyViolationType)
	}
}
