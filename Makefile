# What developers and CI call; `make` lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --keep-going # one failed check does not hide the others

# More flags for go test: make test ARGS='-run=TestClaim -v'
ARGS ?=
# One benchmark alone: make bench BENCH=Replay
BENCH ?= .

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(CURDIR)/bin/golangci-lint-$(GOLANGCI_LINT_VERSION)

export IDEM_TEST_REQUIRE ?= sqlite,postgres,pgbouncer,mysql,mariadb,redis,redis-cluster,redis-sentinel,valkey,rabbitmq

.PHONY: help
help: ## List the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

# -count=1, because the servers are an input that go's test cache does not see.
.PHONY: test
test: services-up ## Run every module's tests with the race detector, against all servers
	@environment=$$(scripts/services env); eval "$$environment"; \
	scripts/each-module go test -race -count=1 -p=1 -timeout=40m $(ARGS) ./...

.PHONY: test-short
test-short: ## Run what needs no server, without the race detector: seconds, for while you type
	@IDEM_TEST_REQUIRE=sqlite scripts/each-module go test -short $(ARGS) ./...

# One package after another, because they write one file.
.PHONY: conformance
conformance: services-up ## Run the conformance suite against all drivers, and write docs/conformance.md
	@rm -f docs/conformance.md
	@environment=$$(scripts/services env); eval "$$environment"; \
	go test -race -count=1 -p=1 -timeout=40m -run='^(TestMemory|TestConformance.*)$$' $(ARGS) \
		./conformance ./drivers/sql ./drivers/redis -conformance.report=$(CURDIR)/docs/conformance.md

# Any number: make histories HISTORIES=1000 ARGS='-run=TestRedis -histories.seed=7'
HISTORIES ?= 10000
.PHONY: histories
histories: services-up ## Check ten thousand random histories of every driver (HISTORIES=1000)
	@environment=$$(scripts/services env); eval "$$environment"; \
	cd conformance/histories && go test -count=1 -v -parallel=1 -timeout=60m -skip='TestMutants|TestBroken' $(ARGS) . \
		-histories.count=$(HISTORIES)

# Any length: make soak SOAK=30m ARGS='-seed=7'
SOAK ?= 10m
.PHONY: soak
soak: services-up ## Run all drivers under faults for ten minutes, and count what happens (SOAK=30m)
	@environment=$$(scripts/services env); eval "$$environment"; \
	cd internal/soak && go run -race . -for=$(SOAK) $(ARGS)

.PHONY: bench
bench: services-up ## Run every module's benchmarks against all servers
	@environment=$$(scripts/services env); eval "$$environment"; \
	scripts/each-module go test -run='^$$' -bench='$(BENCH)' -benchmem -timeout=60m $(ARGS) ./...

.PHONY: lint
lint: lint-go lint-mod lint-scripts ## Check the Go code, the module files and the scripts

.PHONY: lint-go
lint-go: $(GOLANGCI_LINT)
	@scripts/each-module $(GOLANGCI_LINT) run --config=$(CURDIR)/.golangci.yml --timeout=15m

# go mod tidy -diff prints what it would change, and fails if that is anything.
.PHONY: lint-mod
lint-mod:
	@scripts/each-module go mod tidy -diff
	@scripts/each-module go mod verify

# On Debian and Ubuntu: apt-get install shellcheck
.PHONY: lint-scripts
lint-scripts:
	@if command -v shellcheck >/dev/null; then \
		shellcheck --external-sources --check-sourced scripts/services scripts/services.d/rabbitmq scripts/each-module model/run.sh .ci/run; \
	else \
		echo "shellcheck is not installed: the scripts are not checked" >&2; \
	fi

# On Debian and Ubuntu: apt-get install spin
.PHONY: model
model: ## Check the models of the protocol with spin
	@model/run.sh

.PHONY: format
format: $(GOLANGCI_LINT) ## Format the Go code
	@scripts/each-module $(GOLANGCI_LINT) fmt --config=$(CURDIR)/.golangci.yml

.PHONY: services-up
services-up: ## Start the servers of the tests
	@scripts/services up

.PHONY: services-down
services-down: ## Stop them
	@scripts/services down

# The version is in the name, so that a new one is built and an old checkout finds its own.
$(GOLANGCI_LINT):
	@mkdir -p bin/build
	@GOBIN=$(CURDIR)/bin/build go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv bin/build/golangci-lint $@
