package wire

import (
	"math/rand/v2"
	"strconv"
)

// Echoes are numbers that tell the commands over a connection from each other: so many that none is
// under way twice, and beginning anywhere, so that none is another process's.
type Echoes struct {
	first int64
	count int
	texts []string // made once: each would be an allocation a command
	most  int
}

// NewEchoes makes numbers for so many commands under way at a time.
func NewEchoes(underWay int) Echoes { return Echoes{first: 1 + rand.Int64N(1<<40), most: 2 * underWay} }

// Next is the next number, and the argument that asks for it.
func (e *Echoes) Next() (echo int64, text string) {
	i := e.count % e.most
	e.count++
	echo = e.first + int64(i)
	if i == len(e.texts) {
		e.texts = append(e.texts, strconv.FormatInt(echo, 10))
	}
	return echo, e.texts[i]
}
