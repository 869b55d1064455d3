package sample

type toy struct {
	parts []part
	home  *Owner // a parent: a map there holds toys
}

func (t *toy) play(any) { t.home.size++ } // of a parent

type part struct{ whole *Owner } // a parent: it holds toys, and they hold parts

func (p part) weight() int { return p.whole.size + newest().size } // of a parent, once

type guest struct{ host *Owner } // no parent: it holds no guests

func (g guest) leave() { g.host.size-- }
