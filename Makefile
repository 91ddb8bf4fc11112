# Thin on purpose: the work is done by scripts/, which one can also run by hand.
.DEFAULT_GOAL := help
.PHONY: help setup demo build test test-long bench choosing fuzz soak clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: ## install missing tools (as root), or list them
	@bash scripts/setup.sh test

demo: ## send a file over four relays and write a report (FILE=path: your own file)
	@bash scripts/setup.sh demo
	@FILE="$(FILE)" bash scripts/demo.sh

build: ## build the command for use: target/release/anabranch
	@bash scripts/setup.sh build
	@bash scripts/build.sh

test: ## all checks: format, lint, tests, docs, interop (VERBOSE=1: all output)
	@bash scripts/setup.sh test
	@bash scripts/test.sh

test-long: ## longer checks: more seeds, larger transfers, valgrind
	@bash scripts/setup.sh test
	@bash scripts/test.sh long

bench: ## measure speed
	@bash scripts/setup.sh demo
	@bash scripts/bench.sh

choosing: ## run the sweeps behind docs/choosing.md, with a report of plots for each (SEEDS=1..3: quicker)
	@bash scripts/choosing.sh

fuzz: ## look for crashes with cargo-fuzz for SECONDS_EACH=60 per target
	@bash scripts/fuzz.sh

soak: ## random scenarios for an hour (MINUTES=, KIND=, SEED=), failing ones reduced; CASE= or REPLAY=FILE: repeat one
	@SOAK_SECONDS="$(SOAK_SECONDS)" MINUTES="$(MINUTES)" KIND="$(KIND)" SEED="$(SEED)" FIRST="$(FIRST)" CASE="$(CASE)" REPLAY="$(REPLAY)" SEGMENTS="$(SEGMENTS)" \
		bash scripts/soak.sh

clean: ## remove everything that was built or written
	rm -rf target out fuzz/target
