package model
import ("testing";"fmt";"time";"runtime")
func TestTry(t *testing.T) {
	for _, m := range RosterMistakes() {
		b := time.Now()
		r := search[rosterState](roster{m.RosterConfig}, runtime.GOMAXPROCS(0), 2_000_000)
		fmt.Println("M", m.Name, r.states, r.broken, m.Violates, time.Since(b))
	}
	for _, c := range RosterDesigns() {
		b := time.Now()
		r := search[rosterState](roster{c}, runtime.GOMAXPROCS(0), 400_000)
		fmt.Println("D", c.Name, r.states, r.broken, r.exhausted, time.Since(b))
	}
}
