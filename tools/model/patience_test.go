//go:build !nightly

package model

// patience is how many seconds a search may have taken that docs/model.md tells of: make model has
// more, and searches all.
const patience = 3
