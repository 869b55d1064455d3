module github.com/tenure-dev/tenure/cmd/tenure

go 1.26.0

replace github.com/tenure-dev/tenure => ../../

require (
	github.com/robfig/cron/v3 v3.0.1
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	github.com/tenure-dev/tenure v0.0.0
	github.com/valkey-io/valkey-go v1.0.79
)

require (
	github.com/stretchr/testify v1.12.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	golang.org/x/sys v0.49.0
)
