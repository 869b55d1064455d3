# `make` lists the targets. Everything runs with the go command. What else a target needs is installed where it is missing
# (scripts/install.sh).

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Added to every go test command of test, test-all, race and e2e: make test TESTFLAGS='-run Fencing -v'
TESTFLAGS ?=
# Of one package. A machine that is busy with other things may be many times slower.
TIMEOUT ?= 30m
# What torture attacks, for how long each, and flags for it: make torture WORKLOAD=leases FOR=1h FLAGS='-seed 7'
WORKLOAD ?= leases five three far memory
FOR ?= 5m
FLAGS ?=
# Rows of bench, with commas: make bench ROW=contended
ROW ?=
# How long each fuzz test searches.
FUZZTIME ?= 30s

# go.work joins the library, the command, the manifests, the examples, the demonstration, the tools and the model: "work"
# means the packages of all seven. The benchmarks beside other libraries are a module that stands alone, because what is
# compared would change the versions of the rest; so are the tests in a browser, which "work" shall not start.
MODULES := . $(patsubst %/go.mod,%,$(wildcard */go.mod cmd/*/go.mod examples/*/go.mod tools/*/go.mod))
ALONE := bench e2e

# Files named _long_test.go have the tag long: test-all runs their tests, test does not. Those that need more than a clean
# checkout and minutes of their own are named _nightly_test.go.
TAGS := long,nightly

.DEFAULT_GOAL := help
.PHONY: $(shell awk -F: '/^[a-z0-9-]+:/ { print $$1 }' $(firstword $(MAKEFILE_LIST)))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

check: size ## format, vet, staticcheck, import rules, links of documents, Lua, tidy modules, sizes; needs no server
	@unformatted=$$(gofmt -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then echo "gofmt -w is due on:" $$unformatted >&2; exit 1; fi
	@# Paths of one machine work nowhere else. Brackets keep the pattern from matching itself.
	@! grep -rInE --exclude-dir=.git --exclude=.git --exclude-dir=bin '(^|[^[:alnum:]_.~/-])/([w]ork|[r]oot|[h]ome|[U]sers)(/|$$|[^[:alnum:]_-])' .
	go vet -tags $(TAGS) work
	go run $(STATICCHECK) -tags $(TAGS) work
	@set -e; for dir in $(ALONE); do (set -x; cd $$dir; go vet -tags $(TAGS) ./...; go run $(STATICCHECK) -tags $(TAGS) ./...); done
	@set -e; for dir in $(MODULES); do (set -x; cd $$dir; GOWORK=off go mod tidy -diff); done
	go test ./internal/deptest
	go test -count=1 ./tools/site
	go test -run Scripts ./redlock/internal/wire
	@scripts/race_test.sh

size: ## print how large each part is beside its ceiling in scripts/size.txt, and fail above it
	@scripts/size.sh

# Many tests wait for real servers: four packages at a time keep two cores busy. make check vets.
test: servers ## the tests of the library and the command, on real servers where they need them
	go test -p 4 -vet=off -timeout $(TIMEOUT) $(TESTFLAGS) ./... ./cmd/tenure/...

# Tests that make test has passed are not run again here. Tests of the other modules read documents and sources of the
# library, of which the go command knows nothing: a pass in its cache may be out of date. The longest packages begin
# first. More at a time than this, and leases with short TTLs on real servers are lost on two cores.
test-all: test ## all tests of all modules: also simulations of hours, memory, crowds, the model, tools, deploy, examples
	@status=0; set -x; \
	go test -p 3 -parallel 4 -vet=off -tags long -count=1 -timeout $(TIMEOUT) -run "$$(scripts/long_tests.sh)" $(TESTFLAGS) \
		./redlock ./scheduler ./... ./cmd/tenure/... $$(go list ./deploy/... ./examples/... ./examples/demo/... ./tools/...) || status=1; \
	(cd bench && go test -timeout $(TIMEOUT) $(TESTFLAGS) ./moving) || status=1; \
	exit $$status

nightly: race model torture fuzz dashboard examples e2e ## what CI does not run: races, faults, other servers, defects, a browser
	@TIMEOUT=$(TIMEOUT) TESTFLAGS='$(TESTFLAGS)' scripts/servers.sh
	go test -p 1 -tags $(TAGS) -timeout $(TIMEOUT) -run "$$(scripts/long_tests.sh nightly)" $(TESTFLAGS) ./... ./cmd/tenure/...
	go test -p 1 -tags nightly -count=1 -timeout $(TIMEOUT) $(TESTFLAGS) ./examples/... ./examples/demo/... ./tools/upstream ./tools/site
	cd bench && go test -p 1 -timeout $(TIMEOUT) $(TESTFLAGS) ./...
	go run ./tools/defects
	@set -ex; for package in redlock/internal/vote redlock/internal/listen internal/board; do \
		GOWORK=off go run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --timeout-coefficient 20 ./$$package; done

race: servers ## the tests of the library under the race detector
	scripts/race.sh -p 1 -timeout $(TIMEOUT) $(TESTFLAGS) $$(go list ./... | grep -v '/redlock$$')
	SHARDS=5 scripts/race.sh -timeout $(TIMEOUT) $(TESTFLAGS) ./redlock

torture: servers ## attack real servers, clients and replicas with faults, check every lease and tick (FOR=5m, WORKLOAD=three)
	@set -e; for work in $(WORKLOAD); do \
		(set -x; go run ./tools/torture -workload $$work -duration $(FOR) $(FLAGS)); done

model: ## search every state of the protocol's model, and print what is found
	go test -tags nightly -count=1 -timeout $(TIMEOUT) -v ./tools/model

fuzz: ## fuzz everything that is parsed, each test for FUZZTIME
	@set -e; for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		for name in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			(set -x; go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$package); \
		done; \
	done

bench: servers ## measure Tenure beside the floor and its peers; ROW=contended for one row
	cd bench && go run ./versus $(if $(ROW),-row $(ROW))

examples: servers ## run the examples
	go run ./examples/fencing
	go run ./examples/locker
	go run ./examples/elector
	go run ./examples/scheduler
	go run ./examples/observability -duration 12s -kill-leader-after 6s -listen 127.0.0.1:0,127.0.0.1:0,127.0.0.1:0
	go run ./examples/quickstart -duration 12s

demo: ## make the demonstration that runs in a browser alone, as static files in bin/demo
	go run ./examples/demo -out bin/demo

site: demo ## make the site of README.md and docs, as static files in bin/site, with search and the demonstration
	mkdir -p bin/site && rm -rf bin/site/demo && cp -r bin/demo bin/site/demo
	go run ./tools/site -out bin/site

e2e: servers ## drive the pages in a real Chromium (TESTFLAGS='-run Order -v'); pictures are in bin/e2e
	@scripts/install.sh chromium axe
	cd e2e && go test -count=1 -p 1 -timeout $(TIMEOUT) $(TESTFLAGS) ./...

dashboard: ## test the alert rules, and ask a real Prometheus every query of the dashboard and the rules
	@scripts/install.sh prometheus
	promtool check config examples/observability/prometheus/prometheus.yml
	promtool test rules examples/observability/prometheus/tests/*.yml
	go test -tags nightly -count=1 -timeout $(TIMEOUT) -v -run Prometheus ./tools/dashtest

tidy: ## tidy the modules
	@set -e; for dir in $(MODULES); do (set -x; cd $$dir; go mod tidy); done

# What most targets need.
servers:
	@scripts/install.sh valkey compiler node openssl curl
