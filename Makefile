# `make` lists the targets. Everything runs with the go command; the tests also
# need valkey-server and a C compiler, which are installed where they are missing.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Added to every go test command of test, race and cover: make test TESTFLAGS='-run Fencing -v'
TESTFLAGS ?=
# Of one package. The longest takes two minutes; a machine that is busy with other things may be six times slower.
TIMEOUT ?= 30m
# How long chaos runs, and flags for it: make chaos CHAOS=1h CHAOSFLAGS='-seed 7'
CHAOS ?= 5m
CHAOSFLAGS ?=
# The same for soak, in each topology: make soak TOPOLOGY=three SOAK=1m
SOAK ?= 10m
SOAKFLAGS ?=
TOPOLOGY ?= five three far memory
# Rows of bench, with commas: make bench ROW=contended; and flags for it.
ROW ?=
BENCHFLAGS ?=
# What is tested under the race detector, besides package redlock.
RACE ?= ./...
# Of which servers: redis-7.0 redis-8.0 valkey-8.0 valkey-8.1; empty for all.
SERVERS ?=
# For the go test command of e2e.
E2EFLAGS ?=
# How long each fuzz test searches.
FUZZTIME ?= 30s

# go.work joins the library, the command, the manifests, the examples and the tools: "work" means the packages of all
# five. The benchmarks beside other libraries are a module that stands alone, because what is compared would change the
# versions of the rest; so are the tests in a browser, which "work" shall not start.
MODULES := . $(patsubst %/go.mod,%,$(wildcard */go.mod cmd/*/go.mod))

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: check
check: fmt vet staticcheck deptest lua tidy-check scripts-test paths ## format, vet, staticcheck, import rules, Lua, tidy modules, scripts

# Tests of the other modules read documents and sources of the library. The go command knows nothing of what a test reads
# outside of its module and would repeat a pass that is out of date. The model takes minutes, and the target model
# searches it anew.
.PHONY: test
test: valkey compiler node ## run the tests against real Valkey servers
	@status=0; set -x; \
	go test -timeout $(TIMEOUT) $(TESTFLAGS) ./... ./tools/model || status=1; \
	go test -count=1 -timeout $(TIMEOUT) $(TESTFLAGS) $$(go list ./cmd/tenure/... ./deploy/... ./examples/... ./tools/... | grep -v '/model$$') || status=1; \
	(cd bench && go test -timeout $(TIMEOUT) $(TESTFLAGS) ./moving) || status=1; \
	exit $$status

# Tests that read documents, and their packages: a test in internal/deptest sees that none is missing. Those of the model
# read docs/model.md as well, and take minutes: make model.
DOC_TESTS := \
	TestConditionsAreDocumented TestDoctorFindsDroppedWrites TestDoctorFindsWhatIsBroken TestDocumentHasNothingElse \
	TestDocumentShowsTheFiles \
	TestDocumentShowsTheLocker TestDocumentedCode TestDocumentedStatements TestHelp TestHostOfTheDocumentsProxy \
	TestMemoryOfKeys TestMemoryOfQuorums TestMemoryOfUsedKeys TestModelNamesADefect TestPageAppliesAllInOrder TestPageHasTheMetrics \
	TestPageSaysHowManyJobsAndElectionsThereIsRoomFor TestPageSaysWhatTheManifestsSay \
	TestProgram TestReader TestSkipReasonsAreOnThePage
DOC_PACKAGES := ./bench/moving ./cmd/tenure ./deploy/kubernetes ./examples/fencing ./examples/nodes ./otel ./redlock \
	./scheduler ./web
DOC_RUN := ^($(subst $(eval) ,|,$(strip $(DOC_TESTS))))$$

.PHONY: docs
docs: paths deptest valkey compiler ## run the tests that read documents, for a change of documents alone
	go test -count=1 -run '$(DOC_RUN)' $(filter-out ./bench/%,$(DOC_PACKAGES))
	cd bench && go test -count=1 -run '$(DOC_RUN)' $(patsubst ./bench/%,./%,$(filter ./bench/%,$(DOC_PACKAGES)))

.PHONY: race
race: valkey compiler ## run the tests of the library under the race detector (RACE=work for all but bench)
	scripts/race.sh -p 1 -timeout $(TIMEOUT) $(TESTFLAGS) $$(go list $(RACE) | grep -v '/redlock$$')
	SHARDS=5 scripts/race.sh -timeout $(TIMEOUT) $(TESTFLAGS) ./redlock

# The tests of scheduler and redlock that race-quick runs: all of them take most of an hour under the detector.
QUICK := Wait|Close|Concurren|Goroutine|Notice|Shutdown|Locker|Elector

.PHONY: race-quick
race-quick: valkey compiler ## race without most tests of scheduler and redlock, which take most of an hour
	scripts/race.sh -p 1 -timeout $(TIMEOUT) $(TESTFLAGS) $$(go list $(RACE) | grep -Ev '/(redlock|scheduler)$$')
	scripts/race.sh -p 1 -timeout $(TIMEOUT) $(TESTFLAGS) -run '$(QUICK)' ./redlock ./scheduler

.PHONY: cover
cover: valkey compiler ## run the tests and print the coverage of each function
	go test -timeout $(TIMEOUT) -coverprofile=cover.out $(TESTFLAGS) work
	go tool cover -func=cover.out

.PHONY: servers
servers: compiler ## run the server tests on every Valkey and Redis that Debian packages (SERVERS=redis-7.0 for one)
	@TIMEOUT=$(TIMEOUT) TESTFLAGS='$(TESTFLAGS)' scripts/servers.sh $(SERVERS)

.PHONY: chaos
chaos: valkey compiler ## attack real servers and client processes with faults, and check every lease (CHAOS=5m)
	go run ./tools/chaos -duration $(CHAOS) $(CHAOSFLAGS)

.PHONY: soak
soak: valkey compiler ## run scheduled jobs on replicas under faults, and check every tick (SOAK=10m)
	@set -e; for topology in $(TOPOLOGY); do (set -x; go run ./tools/soak -topology $$topology -duration $(SOAK) $(SOAKFLAGS)); done

.PHONY: model
model: ## search every state of the protocol's model
	go test -count=1 -timeout $(TIMEOUT) -v -run 'Real|Defects' ./tools/model

.PHONY: fuzz
fuzz: ## fuzz everything that is parsed, each test for FUZZTIME
	@set -e; for package in ./redlock ./redlock/internal/wire ./internal/bulletin ./internal/orders; do \
		for name in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			(set -x; go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$package); \
		done; \
	done

.PHONY: bench
bench: valkey compiler ## measure Tenure beside the floor and its peers; ROW=contended for one row
	cd bench && go run ./versus $(if $(ROW),-row $(ROW)) $(BENCHFLAGS)

.PHONY: microbench
microbench: valkey compiler ## run the micro-benchmarks, each with a floor beside it
	go test -run '^$$' -bench . -benchmem work

.PHONY: examples
examples: ## build and run the examples
	go build -o /dev/null ./examples/...
	go run ./examples/fencing
	go run ./examples/locker
	go run ./examples/elector
	go run ./examples/scheduler
	go run ./examples/poller
	go run ./examples/observability -duration 12s -kill-leader-after 6s -metrics-port 0
	go run ./examples/quickstart -duration 12s -mode elector
	go run ./examples/quickstart -duration 12s -mode locker

.PHONY: e2e
e2e: valkey compiler chromium axe ## drive the pages in a real Chromium (E2EFLAGS='-run Order -v'); pictures are in bin/e2e
	cd e2e && go test -count=1 -p 1 -timeout $(TIMEOUT) $(E2EFLAGS) ./...

.PHONY: picture
picture: valkey compiler chromium axe ## take the picture of the README, docs/web.png
	cd e2e && go test -count=1 -run TestPicture ./pages -picture docs/web.png

.PHONY: demo
demo: ## make the demonstration that runs in a browser alone, as static files in bin/demo
	go run ./examples/demo -out bin/demo

.PHONY: rules
rules: prometheus ## check and test the alert rules with promtool
	promtool check rules examples/observability/prometheus/rules/*.yml
	promtool check config examples/observability/prometheus/prometheus.yml
	promtool test rules examples/observability/prometheus/tests/*.yml

.PHONY: dashboard
dashboard: prometheus ## ask a real Prometheus every query of the dashboard and the rules
	go run ./tools/dashtest

.PHONY: prometheus
prometheus: ## install prometheus and promtool where they are missing (Debian and Ubuntu)
	@scripts/install-prometheus.sh

.PHONY: chromium
chromium: ## install chromium where it is missing (Debian and Ubuntu)
	@scripts/install-chromium.sh

.PHONY: axe
axe: ## fetch axe-core, which finds what not everybody can use in a page
	@scripts/install-axe.sh

.PHONY: valkey
valkey: ## install valkey-server where it is missing (Debian and Ubuntu)
	@scripts/install-valkey.sh

.PHONY: compiler
compiler: ## install a C compiler where it is missing (Debian and Ubuntu); moving servers' clocks needs one
	@scripts/install-compiler.sh

.PHONY: node
node: ## install Node.js where it is missing (Debian and Ubuntu); a test runs the demonstration with it
	@scripts/install-node.sh

.PHONY: tidy
tidy: ## tidy the modules
	@set -e; for dir in $(MODULES); do (set -x; cd $$dir; go mod tidy); done

.PHONY: clean
clean: ## remove what the other targets leave behind
	rm -rf bin cover.out
	find . -type f \( -name '*.test' -o -name '*.prof' \) -not -path './.git/*' -delete

# The parts of check.

.PHONY: fmt
fmt:
	@unformatted=$$(gofmt -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then echo "gofmt -w is due on:" $$unformatted >&2; exit 1; fi

.PHONY: vet
vet:
	@set -e; for dir in $(MODULES); do (set -x; cd $$dir; GOWORK=off go vet ./...); done

.PHONY: staticcheck
staticcheck:
	@set -e; for dir in $(MODULES); do (set -x; cd $$dir; go run $(STATICCHECK) ./...); done

.PHONY: deptest
deptest:
	go test ./internal/deptest

.PHONY: lua
lua:
	go test -run Scripts ./redlock/internal/wire

.PHONY: tidy-check
tidy-check:
	@set -e; for dir in $(MODULES); do (set -x; cd $$dir; go mod tidy -diff); done

.PHONY: scripts-test
scripts-test:
	@scripts/install-valkey_test.sh
	@scripts/race_test.sh

.PHONY: paths
paths:
	@scripts/check-paths.sh
