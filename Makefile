# codeq. `make` alone lists what can be made.

# The toolchain of go.mod is exported, because its line is ignored where Go is set
# to GOTOOLCHAIN=local: known vulnerabilities are fixed in that version.
export GOTOOLCHAIN := $(shell awk '$$1 == "toolchain" { print $$2 }' go.mod)

# The program needs no C compiler, and everything but the race tests runs
# without one, so that what is checked is what is built.
export CGO_ENABLED := 0

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# What `make TARGET NAME=value` may set.
LISTEN ?= 127.0.0.1:8080
DATA ?= ./codeq-data
FUZZTIME ?= 10s
QUICKTIME ?= 60
CRASHTIME ?= 5m
BENCHTIME ?= 1x
COUNT ?= 1
N ?= 1000
SCALE ?= 1000000
SHORT ?= 5000000
KILLS ?= 200
DAYS ?= 50
CLAIMS ?= 5000000
BULK ?= 2000000
SIZES ?= 20
PAGES ?= 2000000
CALLBACKS ?= 100000
ARTIFACT ?= 5368709120
TASKS ?= 0
WARM ?= 330
ROUNDS ?= 3
ONLY ?=
AT ?=
SYSTEM ?=
REWRITE ?=

TOOLS := bin/tools

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build, then serve on LISTEN (127.0.0.1:8080) with the data in DATA (./codeq-data)
	@exec ./bin/codeq serve --listen $(LISTEN) --data $(DATA)

.PHONY: build
build: ## build ./bin/codeq; needs no C compiler
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/codeq ./cmd/codeq

# A release has the first number of the change log, and the time of its commit.
RELEASE = $(shell sed -n 's/^## \([0-9][0-9.]*\) .*/\1/p' CHANGELOG.md | head -n 1)
RELEASED = -version '$(RELEASE)' -commit '$(COMMIT)' -time "$$(git log -1 --format=%ct)" -only '$(SYSTEM)'

.PHONY: release
release: $(TOOLS)/release ## build archives for every system, or for SYSTEM=linux/amd64, with checksums and bills of materials, in bin/release
	@$(TOOLS)/release $(RELEASED) -out bin/release
	@cat bin/release/SHA256SUMS

.PHONY: reproduce
reproduce: release ## build the release once more, from the commit, in another directory and without caches, and compare
	@dir=$$(mktemp -d); trap 'chmod -R u+w "$$dir"; rm -rf "$$dir"' EXIT; \
		git archive HEAD | tar -x -C "$$dir" --one-top-level=sources; \
		GOCACHE="$$dir/cache" $(TOOLS)/release $(RELEASED) -root "$$dir/sources" -out "$$dir/release"; \
		diff bin/release/SHA256SUMS "$$dir/release/SHA256SUMS" && echo 'the same bytes twice'

.PHONY: deploy-test
deploy-test: ## try deploy/: the image without rights, nginx and Caddy, the chart and the Compose file; ONLY=image, proxy or chart is one of them; ten minutes the first time
	@.ci/deploy $(ONLY)

.PHONY: image
image: $(TOOLS)/image ## make a container image for linux/amd64 and linux/arm64, or for SYSTEM, without a daemon, in bin/image
	@$(TOOLS)/image -version '$(RELEASE)' -commit '$(COMMIT)' -time "$$(git log -1 --format=%ct)" -only '$(SYSTEM)' -out bin/image

.PHONY: quick
quick: ## vet and the short tests that need no process of their own; fails when that takes more than QUICKTIME=60 seconds
	@.ci/quick $(QUICKTIME)

.PHONY: test
test: check $(TOOLS)/testsum ## all that CI runs: check, the tests under the race detector, the long ones, and every fuzz target for two seconds
	@.ci/gotest | $(TOOLS)/testsum

.PHONY: check
check: $(TOOLS)/staticcheck ## toolchain, gofmt, vet and staticcheck
	@echo '== toolchain'
	@want=$$(awk '$$1 == "toolchain" { print $$2 }' go.mod); got=$$(go env GOVERSION); \
		[ "$$got" = "$$want" ] || { echo "go is $$got, go.mod asks for $$want: unset GOTOOLCHAIN on make's command line, or set it to $$want"; exit 1; }
	@echo '== gofmt'
	@bad=$$("$$(go env GOROOT)/bin/gofmt" -l .); \
		[ -z "$$bad" ] || { echo "not formatted, run 'make fmt':"; echo "$$bad"; exit 1; }
	@echo '== vet'
	@go vet ./...
	@go -C internal/tools vet ./...
	@go -C test/peers vet ./...
	@echo '== staticcheck'
	@$(TOOLS)/staticcheck ./...
	@cd internal/tools && ../../$(TOOLS)/staticcheck ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s)
	@.ci/fuzz $(FUZZTIME)

.PHONY: sim
sim: ## run new seeds through the simulator for a minute, each twice; `make test` runs fixed ones
	go test -count=1 -run '^TestSim$$' -v ./test/sim -sim.for=1m

.PHONY: soak
soak: ## run N=1000 new seeds through the simulator, longer ones; hours with a large N
	go test -count=1 -run '^TestSim$$' -v -timeout 0 ./test/sim -sim.soak=$(N) -sim.steps=20000

.PHONY: cluster-crash
cluster-crash: ## kill the leader of three nodes KILLS=200 times under many clients, and check that what they saw can be explained; twenty minutes
	go test -count=1 -run '^(TestLostLeaders|TestSessionsGoOn)' -v -timeout 0 ./test/crash -crash.kills=$(KILLS)

.PHONY: cluster-faults
cluster-faults: ## give three nodes DAYS=50 bad days of each kind under many clients (partitions, pauses, power cuts, new members, damage), as cluster-crash; an hour
	go test -count=1 -run '^(TestBadDays|TestAnOldLeader|TestAFlippedBit|TestDirectoriesOfNoNode|TestFullDisks)' -v -timeout 0 ./test/crash -crash.days=$(DAYS)
	go test -count=1 -run Nodes -v ./test/rolling -rolling.cluster

.PHONY: cluster-bench
cluster-bench: ## measure three nodes beside one, five pairs of each load, and how long clients wait after 5 kills of the leader and over 50 hand-overs; ten minutes
	go test -count=1 -v -timeout 0 ./test/scale -run 'ClusterBeside|NobodyWaits' -scale.load=6s -scale.pairs=5 -scale.leaders=5 -scale.handovers=50

.PHONY: crash
crash: ## kill the server under many clients for CRASHTIME (5m), and check that what they saw can be explained
	go test -count=1 -run '^(TestHistories|TestU02Grants)' -v -timeout 0 ./test/crash -crash.for=$(CRASHTIME)

.PHONY: faults
faults: ## what went wrong with other queues, at its full size: half an hour or more; `make test` runs it scaled down
	go test -count=1 -v -timeout 0 ./test/faults -faults.heavy
	go test -count=1 -v ./test/bounds -bounds.idle=10000

.PHONY: conform-faults
conform-faults: conform-faults-go conform-faults-typescript conform-faults-python ## put a fault for each script of codeq conform into each SDK, and see the script find it; conform-faults-go, -typescript and -python are one of them; half an hour

.PHONY: conform-faults-go conform-faults-typescript conform-faults-python
conform-faults-typescript: | sdk/typescript/node_modules
conform-faults-go conform-faults-typescript conform-faults-python: conform-faults-%:
	go test -count=1 -v -timeout 0 -parallel 8 ./test/conform -run EachScript/$* -conform.faults
sdk/typescript/node_modules:
	cd sdk/typescript && npm ci --no-fund --no-audit

.PHONY: scale
scale: ## measure what must not grow with the backlog beside SCALE=1000000 ready and as many delayed tasks
	go test -count=1 -v -timeout 0 ./test/scale -run Nothing -scale.tasks=$(SCALE)

.PHONY: sizes
sizes: ## measure the space on the disk that a task takes, with SIZES=20 MiB of payloads of each length; a minute
	go test -count=1 -v -timeout 0 ./test/scale -run BytesOfATask -scale.sizes=$(SIZES)

.PHONY: claims
claims: ## measure claims at the beginning and the end of CLAIMS=5000000 tasks through one short queue; half an hour or more
	go test -count=1 -v -timeout 0 ./test/scale -run Claims -scale.claims=$(CLAIMS)

.PHONY: bulk
bulk: ## measure how long it takes to cancel 3 % of BULK=2000000 tasks by a member of their payload
	go test -count=1 -v -timeout 0 ./test/scale -run CancelledByFilter -scale.bulk=$(BULK)

.PHONY: pages
pages: ## measure the figures of 150 queues, first pages of lists and a start beside PAGES=2000000 tasks
	go test -count=1 -v -timeout 0 ./test/scale -run FirstPages -scale.pages=$(PAGES)

.PHONY: callbacks
callbacks: ## measure CALLBACKS=100000 callbacks to a receiver on this machine beside a load, five pairs
	go test -count=1 -v -timeout 0 ./test/scale -run CallbacksBeside -scale.callbacks=$(CALLBACKS) -scale.load=10s -scale.pairs=5

.PHONY: artifact
artifact: ## upload and get an artifact of ARTIFACT=5368709120 bytes, and look at the memory of the server
	go test -count=1 -v -timeout 0 ./test/scale -run ArtifactStreams -scale.artifact=$(ARTIFACT)

.PHONY: removal
removal: ## what the removal of ended tasks costs, five pairs, and whether space comes back after SHORT=5000000 short tasks
	go test -count=1 -v -timeout 0 ./test/scale -run 'Space|Removal' -scale.short=$(SHORT) -scale.load=10s -scale.pairs=5

.PHONY: flood
flood: ## what a tenant's tasks take longer while another one floods their shard, five pairs of each kind of flood
	go test -count=1 -v -timeout 0 ./test/scale -run Flood -scale.load=6s -scale.pairs=5

.PHONY: mutants
mutants: ## put faults into the code one by one and see a test catch each; REWRITE=-rewrite notes the seeds that did
	go test -count=1 -tags mutants -run '^TestMutants$$' -v -timeout 4h ./test/sim $(REWRITE)
	go test -count=1 -tags mutants -run '^TestMutants$$' -v -timeout 2h ./test/faults

.PHONY: docs
docs: build ## make pages for a browser of the documents, in bin/docs; `codeq docs` serves the same
	@./bin/codeq docs --write bin/docs

.PHONY: ui
ui: ui/node_modules ## build the pages of the dashboard, ui/dist, which is committed; needs Node 20.19 or later
	@cd ui && node types.mjs && npm run --silent build

.PHONY: sdk-typescript
sdk-typescript: build ## build sdk/typescript and run its tests
	@.ci/typescript

.PHONY: sdk-python
sdk-python: build ## run the tests of sdk/python; PYTHON=python3.10 is another interpreter than the system's
	@.ci/python

.PHONY: conform-python
conform-python: build ## run all scripts of codeq conform with the Python SDK, ROUNDS=3 times
	@for _ in $$(seq $(ROUNDS)); do ./bin/codeq conform -- python3 -B sdk/python/conform/driver.py || exit 1; done

.PHONY: sdk
sdk: sdk-typescript sdk-python ## both of these

.PHONY: conform-typescript
conform-typescript: sdk-typescript ## run all scripts of codeq conform with the SDK for TypeScript, ROUNDS=3 times with the package ws, then with the WebSocket of Node
	@for _ in $$(seq $(ROUNDS)); do ./bin/codeq conform -- node sdk/typescript/conform/driver.mjs || exit 1; done
	@./bin/codeq conform -- node --experimental-websocket sdk/typescript/conform/driver.mjs

.PHONY: uitest
uitest: ui build ## build the pages, then let Chromium run through them
	@cd ui && node --test --test-concurrency=1 test/*.test.mjs

.PHONY: pictures
pictures: ui/node_modules build ## make the pictures of the documents, docs/images, of a demo that has run for WARM=330 seconds
	@WARM=$(WARM) node ui/pictures.mjs

.PHONY: dashboard-bench
dashboard-bench: ui/node_modules build ## measure what people wait for at the dashboard, TASKS=2000000 also beside so many tasks
	@TASKS=$(TASKS) node ui/measure.mjs

ui/node_modules: ui/package-lock.json
	@cd ui && npm ci --no-fund --no-audit && touch node_modules

.PHONY: lines
lines: ## count the product's lines of Go, per package, without tests and what only tests use; AT=COMMIT counts a commit
	@.ci/lines $(AT)

.PHONY: bench
bench: ## run every benchmark once; BENCHTIME=1s COUNT=10 to measure
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -count $(COUNT) ./...

.PHONY: stages
stages: ## print the time and the allocations of each stage that a task passes, as a table; two minutes
	@.ci/stages

.PHONY: peers
peers: build ## measure codeq and other queues in ROUNDS=3, in turn, and print a table; ONLY=nats,redis measures some; ten minutes
	@go -C test/peers build -o ../../bin/ . github.com/nats-io/nats-server/v2
	@PATH="$(CURDIR)/bin:$(PATH)" ./bin/peers -rounds $(ROUNDS) -only '$(ONLY)'

.PHONY: vuln
vuln: $(TOOLS)/govulncheck ## look for known vulnerabilities that the code can reach (fetches today's list)
	@db=$$(go -C internal/tools mod download -json golang.org/x/vulndb@latest | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); \
		[ -n "$$db" ] || { echo "the list of vulnerabilities, the module golang.org/x/vulndb, can not be fetched: nothing was checked"; exit 1; }; \
		$(TOOLS)/govulncheck -db "file://$$db/data/osv" ./...

.PHONY: fmt
fmt: ## format every Go file
	@"$$(go env GOROOT)/bin/gofmt" -w .

.PHONY: clean
clean: ## remove what was built; the data of `make run` stays
	rm -rf bin coverage

# The tools have a module of their own, so that the program's go.mod names only
# what the program needs. Once downloaded they build without a network.
$(TOOLS)/testsum: $(wildcard internal/tools/testsum/*.go) internal/tools/go.mod
	@go -C internal/tools build -o ../../$(TOOLS)/ ./testsum

$(TOOLS)/release: $(wildcard internal/tools/release/*.go) internal/tools/go.mod
	@go -C internal/tools build -o ../../$(TOOLS)/ ./release

$(TOOLS)/image: $(wildcard internal/tools/image/*.go) internal/tools/go.mod
	@go -C internal/tools build -o ../../$(TOOLS)/ ./image

$(TOOLS)/staticcheck: internal/tools/go.mod
	@go -C internal/tools build -o ../../$(TOOLS)/ honnef.co/go/tools/cmd/staticcheck

$(TOOLS)/govulncheck: internal/tools/go.mod
	@go -C internal/tools build -o ../../$(TOOLS)/ golang.org/x/vuln/cmd/govulncheck
