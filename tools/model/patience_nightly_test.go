//go:build nightly

package model

const patience = 3600
