package checker

// Count is how many violations there are of a kind.
func (v *Verdict) Count(kind Kind) (n int) {
	for _, x := range v.Violations {
		if x.Kind == kind {
			n++
		}
	}
	return n
}
