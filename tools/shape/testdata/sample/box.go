package sample

type box struct {
	weight int
	of     *Owner // a parent: it is exported, box is not
}

type crate struct{ of *Owner } // a parent: it embeds crates

type bag struct{ of *Owner } // a parent: it has a pointer to a bag

type tag struct{ of *Owner } // a parent: it has tags as keys

// Peer and Owner hold each other, and are both exported: both are parents.
type Peer struct{ of *Owner }

func weigh(b box, c crate, g *bag, t tag, p *Peer) int {
	return b.of.size + c.of.size + g.of.size + t.of.size + p.of.size + p.of.peer.of.size
}
