package browser

import "testing"

// Suite is a test binary's tests, and the browser that they share. It is for goleak.VerifyTestMain,
// which looks for what is left behind when the browser has ended.
type Suite struct{ *testing.M }

// Run runs the tests and ends the browser.
func (s Suite) Run() int {
	defer Close()
	return s.M.Run()
}
