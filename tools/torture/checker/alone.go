package checker

// checkOverlap wants no run to begin before the earlier ones of the job are over.
func (x *index) checkOverlap(v *Verdict, runs []*run) {
	var latest *run
	for _, r := range runs {
		if r.stale() {
			continue
		}
		if latest != nil && r.began < latest.over() {
			v.add(Overlap, r.began, "%s: %s began %s before %s was over", r.job.Name, r, latest.over().Sub(r.began), latest)
		}
		if latest == nil || r.over() > latest.over() {
			latest = r
		}
	}
}

// checkTokens wants each run to have a greater token than those before. Runs that began after the
// end of their lease have no place in the order, but no token is given twice.
func (x *index) checkTokens(v *Verdict, runs []*run) {
	var last *run
	seen := make(map[uint64]*run)
	for _, r := range runs {
		if other := seen[r.token]; other != nil {
			v.add(Disorder, r.began, "%s: %s has the token of %s", r.job.Name, r, other)
			continue
		}
		seen[r.token] = r
		if r.stale() {
			continue
		}
		if last != nil && r.token < last.token {
			v.add(Disorder, r.began, "%s: %s came after %s", r.job.Name, r, last)
		}
		last = r
	}
}
