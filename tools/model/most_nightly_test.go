//go:build nightly

package model

const mostStates = 1 << 62
