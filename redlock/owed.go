package redlock

// owe keeps a failed release for another try. While a node is silent nothing expires: what lies in
// a frozen server's sockets is carried out when it goes on, with a full TTL.
func (n *node) owe(r *request, silent bool) {
	if silent { //mutant:release-expires-while-frozen
		r.expires = n.q.releaseUntil(r.attempt)
	}
	// A tenth of the TTL at most, so that a node that comes back is clean long before the key would
	// expire.
	r.pause = min(max(2*r.pause, minRetryPause), maxRetryPause, r.attempt.cfg.ttl/10)
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.q.clock.Now()
	if len(n.owed) >= maxQueue || now >= r.expires {
		return
	}
	n.owed = append(n.owed, r)
	if at := now.Add(jitter(r.pause, 0.2)); n.owedAt == 0 || at < n.owedAt {
		n.owedAt = at
	}
}

func (n *node) requeueOwed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owedAt = 0
	for _, r := range n.owed {
		again := *r
		again.round, again.ctx = nil, nil
		n.queue = append(n.queue, &again)
	}
	clear(n.owed)
	n.owed = n.owed[:0]
}
