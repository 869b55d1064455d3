// Package upstream shows what is worked around for valkey-go: docs/upstream.md. Its tests fail once
// a version of valkey-go behaves otherwise, and a workaround can go.
package upstream
