// Package upstream tests behaviour of valkey-go that the library works around: see
// docs/upstream.md. A test fails once a version of valkey-go behaves otherwise, so that its
// workaround can go.
package upstream
