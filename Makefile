# Farmhand: build, test and try it on one machine.
GO       ?= go
FUNCTIONS = dispatcher controller trainer montecarlo thumbnail
# Tools that only look at the code; pinned, run through the module proxy.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
BUILD    = CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w"

.PHONY: help build test race lint demo bench docs deps secrets clean redis
.DEFAULT_GOAL := help

help: ## show what can be made
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/farmhand and the functions below bin/functions
	@mkdir -p bin/functions
	$(BUILD) -o bin/farmhand ./cmd/farmhand
	@for f in $(FUNCTIONS); do $(BUILD) -o bin/functions/$$f ./functions/$$f || exit 1; done

test: redis ## run all tests (installs redis-server on Debian when it is missing)
	$(GO) test ./...
	cd test && $(GO) test ./...
	cd bench && $(GO) vet ./...

race: redis ## run all tests under the race detector
	$(GO) test -race ./...
	cd test && $(GO) test -race ./...

lint: ## gofmt, vet and staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt -w these:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

demo: redis build ## post real work to a farm on this machine, kill parts of it, lose nothing; bursts to a rule and to a learned policy (SHORT=1: under 45 s; CE=1: as on OpenFaaS CE)
	$(GO) run ./examples/demo $(if $(SHORT),-short) $(if $(CE),-ce)

bench: redis build ## measure the queue and the dispatch path
	bin/farmhand bench queue
	bin/farmhand bench dispatch

deps: ## rewrite the checked-in dependency lists of the functions
	$(GO) test ./internal/archtest -run TestDependencies -update

docs: ## check that the links between the documents hold
	$(GO) test ./internal/archtest -run TestDocs

secrets: ## make the suite's secrets on the gateway that faas-cli is logged in to; values in .secrets
	@sh deploy/secrets.sh

clean: ## remove what was built
	rm -rf bin build coverage.out

# The tests run real redis-servers. As root on Debian it is installed; elsewhere
# the command is shown, and the tests say loudly what they leave out.
redis:
	@command -v redis-server >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing redis-server"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server >/dev/null; \
	  fi; \
	  command -v redis-server >/dev/null || \
	    echo "LOUD: redis-server is missing: apt-get install redis-server; $$(grep -rl redistest.Start --include='*_test.go' . | wc -l) test files leave tests out"; }
