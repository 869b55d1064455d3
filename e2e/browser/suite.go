package browser

import "testing"

// Suite is the tests of a test binary, and the browser that they share. It is for
// goleak.VerifyTestMain, which looks for goroutines that are left when the browser has ended.
type Suite struct{ *testing.M }

// Run runs the tests and ends the browser.
func (s Suite) Run() int {
	defer Close()
	return s.M.Run()
}
