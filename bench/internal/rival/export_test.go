package rival

// OracleWaiting is how many wait for the key.
func OracleWaiting(r Rival, key string) int {
	l := r.(*oracle).line(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}
