package model
import ("testing";"fmt";"os")
func TestZZ(t *testing.T) {
	f, _ := os.OpenFile("/tmp/gate_model.log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if os.Getenv("ZZ") == "d" {
		for _, m := range Mistakes() { p := newProtocol(m.Config); r := search[state](p, 2, 4_000_000)
			fmt.Fprintf(f, "| %s | %v | %d | %d | %.1f s want %v\n", m.Name, r.broken, r.depth, r.states, r.elapsed.Seconds(), m.Violates) }
		for _, c := range Spares() { p := newProtocol(c); r := search[state](p, 2, 4_000_000)
			fmt.Fprintf(f, "spare %s %v exhausted %v %.1f s\n", r.row(c.Name), r.broken, r.exhausted, r.elapsed.Seconds()) }
		return
	}
	for _, c := range Designs()[1:] { p := newProtocol(c); r := search[state](p, 2, 6_000_000)
		fmt.Fprintf(f, "%s %.1f | broken %v exhausted %v\n", r.row(c.Name), r.elapsed.Seconds(), r.broken, r.exhausted) }
}
