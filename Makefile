# Everything a person or CI runs. `make` alone lists the targets.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
IMAGE   ?= tarry:local
FUZZTIME ?= 20s
SEED    ?= 7
NEW     ?= HEAD
COMPOSE ?= $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)

GOBUILD = CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'

# The three modules of go.work; ./... is the product alone.
ALL = ./... ./chaos/... ./integration/...

# Packages that goroutines share; the rest has nothing to race.
RACE = ./api/... ./bench/... ./chaos/... ./client/... ./cluster/... ./cmd/... ./dispatch/... ./fsm/... ./push/... \
  ./schedule/... ./timer/...

# Tests of one goroutine that the race detector makes minutes of; make test runs them.
RACE_SKIP = ^(TestMachineMatchesModel|TestAPageReadsOnlyItsOwnJobs|TestAPageEndsAtTheScanLimit|$\
TestWindowIsTheHeadOfItsList|TestMemoryOfHostileLists)$$

.PHONY: help build image test test-all clients fuzz check vulncheck chaos chaos-short cluster cluster-down hello bench pair proto clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./tarry, static, with the version from git
	$(GOBUILD) -o tarry ./cmd/tarry

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
	go test -p 3 -parallel 4 ./...
	TARRY_FAULT_SECONDS=15 go test -v -count=1 -parallel 4 -run '^($(CORE))$$' ./integration

test-all: test ## run the rest but make clients: all tests with real processes and containers, the fault harness's own, a build of the next release
	go test ./chaos/...
	go test -tags chaos,next ./job ./fsm
	go test -tags chaos ./cluster/statemachine
	go test ./cluster/powerloss -timeout 20m -powerloss.rounds 150 -powerloss.bolt 150
	go test -v -count=1 -timeout 20m -parallel 4 -skip '^TestClientConformance$$' ./integration

clients: ## check the clients for Python, Node and PHP, and run the cases that the clients of all languages must pass
	cd clients/python && mypy && PYTHONPATH=src python3 -m unittest discover -s tests -t .
	node --test clients/node/test/*.test.js
	cd clients/php && phpunit --do-not-cache-result --bootstrap autoload.php tests
	go test -v -count=1 -timeout 20m -parallel 2 -run '^Test(Client)?Conformance' ./integration

fuzz: ## fuzz every decoder for FUZZTIME (20s) each
	FUZZTIME=$(FUZZTIME) .ci/fuzz

check: ## gofmt, go vet, staticcheck, the race detector where it matters, and vulncheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	  if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	go vet $(ALL)
	go vet -tags chaos,next $(ALL)
	go tool staticcheck $(ALL)
	CGO_ENABLED=1 go test -race -short -timeout 15m -skip '$(RACE_SKIP)' $(RACE)
	.ci/vulncheck

vulncheck: ## govulncheck: known vulnerabilities in what the code uses (VULNDB= names another database, VULNCHECK=required fails without one)
	.ci/vulncheck

chaos: ## break a cluster for ten minutes in every way this machine can, and judge it (as root for all faults; SEED=)
	go run ./chaos --duration 10m --seed $(SEED)

chaos-short: ## the same for three minutes
	go run ./chaos --duration 3m --seed $(SEED)

cluster: image ## start three nodes in containers, HTTP on ports 7300, 7310 and 7320
	$(COMPOSE) up -d
	@for port in 7300 7310 7320; do \
	  for try in $$(seq 60); do \
	    curl -fs -o /dev/null http://127.0.0.1:$$port/readyz && break; \
	    [ $$try = 60 ] && { echo "the node on port $$port is not ready; see: $(COMPOSE) logs"; exit 1; }; \
	    sleep 1; \
	  done; \
	done
	@echo "three nodes are ready: http://127.0.0.1:7300 http://127.0.0.1:7310 http://127.0.0.1:7320"

cluster-down: ## stop the three nodes; their data stays in volumes
	$(COMPOSE) down

hello: build ## run a single node for a moment and show one job's life
	./examples/hello.sh

bench: build ## measure every row of docs/benchmarks.md on this machine
	./tarry bench --all

pair: ## compare the speed of two revisions in turns (OLD=, NEW=HEAD); 20 minutes on a quiet machine
	go run ./bench/pair $(OLD) $(NEW)

proto: ## regenerate the Protocol Buffers code (needs protoc; the result is committed)
	go build -o .bin/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
	PATH="$(CURDIR)/.bin:$$PATH" protoc -I . --go_out=. --go_opt=paths=source_relative \
	  --go-grpc_out=. --go-grpc_opt=paths=source_relative $(wildcard job/jobpb/*.proto cluster/*/*.proto cluster/*/*/*.proto)
	PATH="$(CURDIR)/.bin:$$PATH" protoc -I . --go-vtproto_out=. --go-vtproto_opt=paths=source_relative,features=marshal+unmarshal_unsafe+size \
	  $(wildcard job/jobpb/*.proto) cluster/noderpc/node.proto

clean: ## remove what the targets above built
	rm -rf tarry .bin
