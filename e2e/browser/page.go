package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Page is a tab. It must be used by one goroutine at a time.
type Page struct {
	tb       testing.TB
	ctx      context.Context
	problems problems
}

// Option sets up a tab before anything is opened in it.
type Option = chromedp.Action[chromedp.Void]

// New opens an empty tab, which is closed with the test. The tab has its own cookies and
// connections, like a tab in another browser; Beside opens one that shares them. The test fails if
// the page complains on its console, unless the test takes the complaint with [Page.TakeProblems]
// or tolerates it with [Page.Tolerate].
func New(tb testing.TB, options ...Option) *Page {
	tb.Helper()
	browser, err := shared()
	require.NoError(tb, err)
	return open(tb, browser, []chromedp.ContextOption{chromedp.WithNewBrowserContext()}, options)
}

// Beside opens another tab of the same window. The tabs share connections to a server.
func (p *Page) Beside(options ...Option) *Page {
	p.tb.Helper()
	return open(p.tb, p.ctx, nil, options)
}

func open(tb testing.TB, parent context.Context, how []chromedp.ContextOption, options []Option) *Page {
	tb.Helper()
	ctx, closeTab := chromedp.NewContext(parent, how...)
	p := &Page{tb: tb, ctx: ctx}
	tb.Cleanup(func() {
		if tb.Failed() {
			p.keep()
		}
		closeTab()
		if found := p.problems.take(); len(found) > 0 {
			tb.Errorf("the page's console:\n\t%s", strings.Join(found, "\n\t"))
		}
	})
	require.NoError(tb, chromedp.Do(ctx)) // makes the tab; it lasts as long as ctx
	require.NoError(tb, chromedp.Listen(ctx, p.problems.hear))
	p.do(call(log.Enable, struct{}{}))
	p.do(call(audits.Enable, struct{}{}))
	for _, o := range append([]Option{Viewport(1280, 900)}, options...) {
		p.do(o)
	}
	return p
}

// Viewport sets the width and height of the tab, in CSS pixels.
func Viewport(width, height int64) Option {
	return chromedp.EmulateViewport(width, height)
}

// Media sets media features, in pairs of name and value: "prefers-color-scheme", "dark", and so on.
func Media(pairs ...string) Option {
	var features []*emulation.MediaFeature
	for i := 0; i+1 < len(pairs); i += 2 {
		features = append(features, &emulation.MediaFeature{Name: pairs[i], Value: pairs[i+1]})
	}
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
}

// WithoutScript turns off the scripts of pages in the tab.
func WithoutScript() Option {
	return call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// Zone sets the time zone of the tab.
func Zone(name string) Option {
	return call(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
}

// Before runs a script in each page, before the page's own scripts.
func Before(script string) Option {
	return call(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// WrongClock sets the page's clock ahead by d, or back if d is negative.
func WrongClock(d time.Duration) Option {
	return Before(fmt.Sprintf(`(() => {
		const off = %d, Right = Date
		globalThis.Date = class Date extends Right {
			constructor(...a) { if (a.length === 0) { super(Right.now() + off) } else { super(...a) } }
			static now() { return Right.now() + off }
		}
	})()`, d.Milliseconds()))
}

// Set applies an option to the tab.
func (p *Page) Set(o Option) {
	p.tb.Helper()
	p.do(o)
}

// Goto opens an address and waits until the page is loaded.
func (p *Page) Goto(url string) {
	p.tb.Helper()
	p.do(chromedp.Navigate(url))
}

// URL returns the address of the page.
func (p *Page) URL() string {
	p.tb.Helper()
	return Value[string](p, "location.href")
}

// Value evaluates an expression in the page. If the value is a promise, Value waits for its result.
func Value[T any](p *Page, expression string) T {
	p.tb.Helper()
	value, err := evaluate[T](p, expression)
	require.NoError(p.tb, err, expression)
	return value
}

func evaluate[T any](p *Page, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Exec runs statements in the page for their effect.
func (p *Page) Exec(expression string) {
	p.tb.Helper()
	_ = Value[bool](p, "(() => {"+expression+"; return true})()")
}

// Wait waits until an expression is true in the page that is shown at that time. An error of the
// expression, such as a property of an element that does not exist, counts as false.
func (p *Page) Wait(expression string, why ...any) {
	p.tb.Helper()
	p.WaitFor(Patience, expression, why...)
}

// WaitFor is Wait with another limit than Patience.
func (p *Page) WaitFor(patience time.Duration, expression string, why ...any) {
	p.tb.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(poll) {
		is, err := evaluate[bool](p, "Boolean("+expression+")")
		switch {
		case err == nil && is:
			return
		case p.ctx.Err() != nil || time.Now().After(deadline):
			require.FailNow(p.tb, fmt.Sprintf("after %v it is not so: %s", patience, expression),
				"%v\nlast error: %v\n%s", fmt.Sprint(why...), err, p.summary())
		}
	}
}

// Click waits until the first element that matches the selector is visible, scrolls to it, and
// clicks on it with the mouse.
func (p *Page) Click(selector string) {
	p.tb.Helper()
	p.Wait("document.querySelector("+Quote(selector)+")?.checkVisibility()", "to be clicked")
	p.do(chromedp.Click(selector))
}

// Type waits until an element is visible, and types text at the end of its content.
func (p *Page) Type(selector, text string) {
	p.tb.Helper()
	p.Wait("document.querySelector("+Quote(selector)+")?.checkVisibility()", "to be typed into")
	p.do(chromedp.SendKeys(selector, text))
}

// Choose sets the value of a select element, and sends the events that a person's choice would
// send.
func (p *Page) Choose(selector, value string) {
	p.tb.Helper()
	p.Wait("document.querySelector("+Quote(selector)+")", "to be chosen from")
	p.Exec(fmt.Sprintf(`const s = document.querySelector(%s); s.value = %s; s.dispatchEvent(new Event("input", {bubbles: true}));
		s.dispatchEvent(new Event("change", {bubbles: true}))`, Quote(selector), Quote(value)))
}

// Key presses a key, or types a text, in the element that has the focus: see package kb of
// chromedp.
func (p *Page) Key(keys string) {
	p.tb.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// Text returns the text of an element as it is shown, or "" if there is no such element.
func (p *Page) Text(selector string) string {
	p.tb.Helper()
	return Value[string](p, "document.querySelector("+Quote(selector)+")?.innerText ?? ''")
}

// Heap returns the number of bytes that the page's scripts use after a garbage collection.
func (p *Page) Heap() float64 {
	p.tb.Helper()
	for range 2 { // the second run collects what finalizers of the first have left
		p.do(call(heapprofiler.CollectGarbage, struct{}{}))
	}
	usage, err := chromedp.Call(p.ctx, runtime.GetHeapUsage, struct{}{})
	require.NoError(p.tb, err)
	return usage.UsedSize
}

// TakeProblems returns the complaints of the console so far, and forgets them.
func (p *Page) TakeProblems() []string { return p.problems.take() }

// Tolerate makes console messages that contain the text no complaint. Examples are a 403 that the
// test wants, and a server that it has stopped.
func (p *Page) Tolerate(text string) { p.problems.tolerate(text) }

func (p *Page) do(a chromedp.Action[chromedp.Void]) {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	require.NoError(p.tb, chromedp.Do(ctx, a))
}

// summary describes a page on which a test has failed.
func (p *Page) summary() string {
	text, err := evaluate[string](p, `location.href + "\n" + (document.body?.innerText ?? "").slice(0, 4000)`)
	if err != nil {
		return fmt.Sprintf("(the page does not answer: %v)", err)
	}
	return text
}

// Quote makes a text a JavaScript string literal. Without control characters in the text it is a
// CSS string too.
func Quote(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // a string can always be encoded
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
