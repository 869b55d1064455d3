package redlock

import "sync"

// processes knows which server process each node of a Quorum is, so that one server does not vote
// twice under two addresses. It is safe for concurrent use.
type processes struct {
	mu   sync.Mutex
	byID map[string]*member // guarded by mu; run_id to the node that has its vote
}

// claim gives the vote of a process to a node, or returns the other node that has it. A node has
// one process.
func (p *processes) claim(runID string, n *member) (other *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		p.byID = make(map[string]*member)
	}
	for id, owner := range p.byID {
		if owner == n && id != runID {
			delete(p.byID, id)
		}
	}
	if owner := p.byID[runID]; owner != nil && owner != n {
		return owner
	}
	p.byID[runID] = n
	return nil
}
