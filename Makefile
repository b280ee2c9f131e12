# Everything a person or CI runs. `make` alone lists the targets.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
IMAGE   ?= $(or $(TARRY_IMAGE),tarry:local)
FUZZTIME ?= 20s
SEED    ?= 7
ROUNDS  ?= 200
NEW     ?= HEAD
PEERS   ?=
COMPOSE ?= $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)

GOBUILD = CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'

# The four modules of go.work; ./... is the product without its client. bench/peers is none of them (docs/dependencies.md).
ALL = ./... ./client/... ./chaos/... ./integration/...

# Packages that goroutines share. The rest has nothing to race, or is the fault harness.
RACE = ./api/... ./auth/... ./bench/... ./client/... ./cluster/... ./cmd/... ./dispatch/... ./fsm/... ./internal/rates/... ./push/... \
  ./schedule/... ./timer/...

# Tests of one goroutine that the race detector makes minutes of, and below them those in which the address of a
# member changes: Raft v1.8.0 reads a peer without its lock then (pipelineSend, updateLastAppended). make test runs them.
RACE_SKIP = ^(TestMachineMatchesModel|TestAPageReadsOnlyItsOwnJobs|TestAPageEndsAtTheScanLimit|$\
TestWindowIsTheHeadOfItsList|TestMemoryOfHostileLists|$\
TestMembersThatExchangeAddressesKeepTheirVotes|TestThreeNodesMakeOneClusterInEveryStartOrder|$\
TestMemberWithANewAddressKeepsItsVote|TestAMemberMayTakeTheAddressOfADeadOne)$$

.PHONY: help build packages release release-check test-packages image test core-tests flakes test-all clients fuzz hunt check vulncheck chaos chaos-short soak cluster cluster-down cluster-secure cluster-secure-down hello bench bench-peers pair proto screenshots clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./tarry, static, with the version from git
	$(GOBUILD) -o tarry ./cmd/tarry

# The program that makes releases is in a module of its own, for its dependencies.
RELEASE = cd deploy/release && GOFLAGS= GOWORK=off go run . -version '$(VERSION)'

packages: ## make deb and rpm packages for Linux in .bin/packages
	rm -rf .bin/packages
	$(RELEASE) -out '$(CURDIR)/.bin/packages' -packages-only -targets linux/amd64,linux/arm64

release: ## make a release in .bin/release: static binaries, packages, bills of materials, checksums
	rm -rf .bin/release
	$(RELEASE) -out '$(CURDIR)/.bin/release'

release-check: ## make the release of HEAD twice, in two places and with two caches, and compare the bytes; ten minutes
	.ci/release-check

test-packages: ## install, start, upgrade and remove the deb package under systemd, in a container of Debian's packages (as root, with debootstrap and systemd-container), and the rpm package without systemd (with rpm); four minutes
	.ci/test-packages
	.ci/test-rpm

image: ## build the container image tarry:local from the static binary
	mkdir -p .bin/image/data
	$(GOBUILD) -o .bin/image/tarry ./cmd/tarry
	docker build -q -t $(IMAGE) .

# What make test runs with real processes: the README's promises, on one and three nodes.
CORE = TestHelloExampleShowsOneJobsLife|TestReadmeNamesOnlyTargetsThatExist|TestSingleNodeKeepsJobsOverKill|$\
TestJobAddedOnOneNodeIsReservedOnAnother|TestCommandsSpeakToTheCluster|TestNothingIsLostWhileLeadersAreKilled|$\
TestNothingIsLostWhenAllNodesAreKilledAtOnce|TestTerminatedLeaderHandsOver|TestFourthNodeJoinsAndTheLeaderIsRemovedUnderLoad|$\
TestWipedNodeComesBackByItself|TestLifeOfABeanstalkdNode|TestBeanstalkdAndHTTPSeeOneQueue

# Most tests wait for clusters more than they compute, so three packages, or four
# tests of integration, run beside each other.
test: ## run the product's tests, then three real nodes through kill -9; under five minutes on two cores
	go test -p 3 -parallel 4 ./... ./client/...
	TARRY_FAULT_SECONDS=15 go test -v -count=1 -parallel 4 -run '^($(CORE))$$' ./integration

core-tests: # for .ci/flakes
	@echo '$(CORE)'

flakes: ## run make test's packages again and again with 0.3, 1 and 2 cores, for HOURS (2) or ROUNDS, and print what ever failed (as root)
	.ci/flakes

test-all: test ## run the rest but make clients: all tests with real processes and containers, the fault harness's own, a build of the next release
	go test ./chaos/...
	cd bench/peers && GOWORK=off go test -count=1 ./... # it reads docs, outside of its module
	cd deploy/release && GOWORK=off go test -count=1 ./... # it reads deploy/package
	go test -tags chaos,next ./job/... ./fsm/...
	go test -tags chaos ./cluster/statemachine
	go test ./dispatch/lending -timeout 30m -run Wrong -lending.mutants
	go test ./cluster/powerloss -timeout 20m -powerloss.rounds 150 -powerloss.bolt 150
	go test -v -count=1 -timeout 25m -parallel 4 -skip '^(TestClientConformance(Tokens)?|$(CORE))$$' ./integration

clients: ## check the clients for Python, Node and PHP, and run the cases that the clients of all languages must pass
	cd clients/python && mypy && PYTHONPATH=src python3 -m unittest discover -s tests -t .
	node --test clients/node/test/*.test.js
	cd clients/php && phpunit --do-not-cache-result --bootstrap autoload.php tests
	go test -v -count=1 -timeout 20m -parallel 2 -run '^TestConformance|^TestClient(Conformance|Readmes)' ./integration

fuzz: ## fuzz every decoder for FUZZTIME (20s) each
	FUZZTIME=$(FUZZTIME) .ci/fuzz

hunt: ## run each random test of the state machine with ROUNDS (200) new seeds, a quarter of an hour; then power losses
	go test ./fsm -count=1 -timeout 4h -fsm.rounds $(ROUNDS)
	go test ./cluster/powerloss -count=1 -timeout 4h -powerloss.seed $$(date +%s) -powerloss.rounds $(ROUNDS) -powerloss.bolt $(ROUNDS)

soak: ## run faults, power losses, backups, restores, standbys and upgrades in turn for HOURS (2), with one page of results in .bin/soak; it can be interrupted and goes on
	.ci/soak

check: ## gofmt, go vet, staticcheck, errcheck, the race detector where it matters, and vulncheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	  if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	go vet $(ALL)
	cd bench/peers && GOWORK=off go vet ./...
	cd deploy/release && GOWORK=off go vet ./...
	go vet -tags chaos,next $(ALL)
	go tool staticcheck $(ALL)
	go tool errcheck -ignoretests -ignoregenerated -exclude .ci/errcheck-excludes $(ALL) # a test fails by what it asserts
	CGO_ENABLED=1 go test -race -short -timeout 15m -skip '$(RACE_SKIP)' $(RACE)
	.ci/vulncheck

vulncheck: ## govulncheck: known vulnerabilities in what the code uses (VULNDB= names another database, VULNCHECK=required fails without one)
	.ci/vulncheck

chaos: ## break a cluster for ten minutes in every way this machine can, and judge it (as root for all faults; SEED=)
	go run ./chaos --duration 10m --seed $(SEED)

chaos-short: ## the same for three minutes
	go run ./chaos --duration 3m --seed $(SEED)

cluster: image ## start three nodes in containers, HTTP on ports 7300, 7310 and 7320 (TARRY_PORT_1= and so on)
	TARRY_IMAGE='$(IMAGE)' $(COMPOSE) up -d
	@host=$${TARRY_PUBLISH:-127.0.0.1}; [ "$$host" != 0.0.0.0 ] || host=127.0.0.1; \
	for port in $${TARRY_PORT_1:-7300} $${TARRY_PORT_2:-7310} $${TARRY_PORT_3:-7320}; do \
	  for try in $$(seq 60); do \
	    curl -fs -o /dev/null "http://$$host:$$port/readyz" && break; \
	    [ $$try = 60 ] && { echo "the node on port $$port is not ready; see: $(COMPOSE) logs"; exit 1; }; \
	    sleep 1; \
	  done; \
	  ready="$$ready http://$$host:$$port"; \
	done; \
	echo "three nodes are ready:$$ready"

cluster-down: ## stop the three nodes; their data stays in volumes
	$(COMPOSE) down

cluster-secure: build image ## start three nodes in containers with TLS, encrypted gossip, tokens and an audit log, and show how to use them
	@COMPOSE='$(COMPOSE)' TARRY_IMAGE='$(IMAGE)' deploy/secure/cluster.sh up

cluster-secure-down: ## stop these nodes; their keys, token and data stay in tarry-secure
	@COMPOSE='$(COMPOSE)' deploy/secure/cluster.sh down

hello: build ## run a single node for a moment and show one job's life
	./examples/hello.sh

bench: build ## measure every row of docs/benchmarks.md on this machine
	./tarry bench --all

bench-peers: build ## measure Tarry beside NATS, beanstalkd and Redis, and make the tables and plots of docs/benchmarks.md (PEERS=-quick, or -full, -pages, -help); 12 minutes
	cd bench/peers && GOWORK=off go build -trimpath -o $(CURDIR)/.bin/ . github.com/nats-io/nats-server/v2
	.bin/peers -root=$(CURDIR) -nats=$(CURDIR)/.bin/nats-server $(PEERS)

pair: ## compare the speed of two revisions in turns (OLD=, NEW=HEAD); 20 minutes on a quiet machine
	go run ./bench/pair $(OLD) $(NEW)

screenshots: ## write docs/images: the dashboard of a cluster with data (needs chromium; takes three minutes)
	TARRY_SCREENSHOTS=$(CURDIR)/docs/images go test -count=1 -timeout 20m -run '^TestDashboardInABrowser$$' ./integration

proto: ## regenerate the Protocol Buffers code (needs protoc; the result is committed)
	go build -o .bin/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
	PATH="$(CURDIR)/.bin:$$PATH" protoc -I . --go_out=. --go_opt=paths=source_relative \
	  --go-grpc_out=. --go-grpc_opt=paths=source_relative $(wildcard job/jobpb/*.proto cluster/*/*.proto cluster/*/*/*.proto)
	PATH="$(CURDIR)/.bin:$$PATH" protoc -I . --go-vtproto_out=. --go-vtproto_opt=paths=source_relative,features=marshal+unmarshal_unsafe+size \
	  $(wildcard job/jobpb/*.proto) cluster/noderpc/node.proto

clean: ## remove what the targets above built
	rm -rf tarry .bin
