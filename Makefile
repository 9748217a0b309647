# make run | test | build | bench | install | fuzz | clean. Each does its own set-up: git and make are enough to start.
#   make run PROMPT="..." MODEL=smollm2|gemma3|file.gguf|hf.co/OWNER/NAME RAW=1      make install PREFIX=/usr/local
#   make fuzz FUZZ_SECONDS=60                                        make bench MODEL=smollm2

MODEL ?= smollm2
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
ifeq ($(origin PROMPT),undefined)
PROMPT := Reply politely to this email: “Can we meet tomorrow?”
endif

# What the user gave reaches the program through the environment: $(value) keeps make from expanding a $ in it, and no
# shell ever reads it as code.
override PROMPT := $(value PROMPT)
override MODEL := $(value MODEL)
override PREFIX := $(value PREFIX)
export PROMPT MODEL RAW PREFIX FUZZ_SECONDS

COUPLET := build/release/couplet

.PHONY: run test build bench install fuzz clean help
.SUFFIXES:
.NOTPARALLEL:

# A raw completion has no end of its own: a base model would go on to the end of its context.
run:
	@tools/setup.sh run
	@tools/build.sh release couplet
	@case "$$MODEL" in hf.co/* | https://*) $(COUPLET) pull "$$MODEL" ;; */* | *.gguf) ;; *) $(COUPLET) pull "$$MODEL" ;; esac
	@$(COUPLET) run --temperature 0 $${RAW:+--raw --max-tokens 64} -- "$$MODEL" "$$PROMPT"

test:
	@tools/setup.sh test
	@tools/test.sh

build:
	@tools/setup.sh run
	@tools/build.sh release couplet

bench:
	@tools/setup.sh run
	@tools/build.sh bench
	@case "$$MODEL" in */* | *.gguf) ;; *) build/bench/couplet pull "$$MODEL" ;; esac
	@build/bench/couplet bench -- "$$MODEL"
	@set -e; for bench in build/bench/bench/*_bench; do echo "== $$bench"; "$$bench"; done

install: build
	@cmake --install build/release --prefix "$$(realpath -m -- "$$PREFIX")"

fuzz:
	@tools/setup.sh fuzz
	@tools/fuzz.sh

clean:
	rm -rf build

help:
	@sed -n '1,4p' Makefile
