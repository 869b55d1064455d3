// Command tenure shows and steers a cluster that shares jobs and elections through package redlock,
// and runs commands under a lease.
//
//	export TENURE_NODES=valkey://a.example.net,valkey://b.example.net,valkey://c.example.net
//	export TENURE_PREFIX=billing
//	tenure doctor
//	tenure status
//	tenure pause nightly-report --why 'the database moves'
//
// docs/steering.md describes every command, its JSON and the exit codes.
package main

import (
	"context"
	"os"

	"github.com/tenure-dev/tenure/cmd/tenure/internal/supervise"
)

func main() {
	if supervise.IsWatchdog() {
		os.Exit(supervise.Watch())
	}
	p := &program{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ()}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}
