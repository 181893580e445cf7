# The front door: "make help" lists what it does.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause

BUILD ?= release
OUT ?= build/$(BUILD)
UNIT_OUT ?= build/asan
JOBS ?= 2
PYTHON ?= /usr/bin/python3
GO ?= $(shell command -v go || ls /usr/local/go/bin/go 2>/dev/null || echo go)

prefix ?= /usr/local
MODULES_DIR ?= /usr/lib/nginx/modules
libdir ?= $(prefix)/lib

export SKIP_DEPS

ifeq ($(filter $(BUILD),release debug asan tsan),)
$(error BUILD must be release, debug or asan)
endif

# Flags.  The same for the library, the command and the modules, but for the
# warnings: nginx's headers do not live up to all of ours.

ASAN = -fsanitize=address,undefined

OPT_release = -O2 -g -DNDEBUG -D_FORTIFY_SOURCE=2 -fstack-protector-strong
OPT_debug = -O0 -g3 -DKUBE_DEBUG=1
OPT_asan = -O1 -g -fno-omit-frame-pointer $(ASAN) \
    -fno-sanitize-recover=undefined -DKUBE_DEBUG=1

OPT_tsan = -O1 -g -fno-omit-frame-pointer -fsanitize=thread -DKUBE_DEBUG=1

LD_release = -Wl,-z,relro -Wl,-z,now
LD_debug =
LD_asan = $(ASAN)
LD_tsan = -fsanitize=thread

STD = -std=c11 -D_DEFAULT_SOURCE
WARN = -Wall -Wextra -Wconversion -Wshadow -Wvla -Wcast-qual \
    -Wdeclaration-after-statement -Werror
WARN_TEST = $(filter-out -Wconversion -Wcast-qual,$(WARN))
LIBS = -lcurl -lcjson -lyaml -lpthread

# The objects go into libkube.so too, which exports what its map names.
PIC = -fPIC -fvisibility=hidden
SONAME = libkube.so.0

# What a layer may include: t/util/layers.py has the one table.  A bare machine
# gets its python3 from the first target that needs it.

LAYERS = base model api client zone publish cache route status
$(foreach word,$(shell command -v $(PYTHON) >/dev/null \
    && $(PYTHON) t/util/layers.py --make),$(eval $(word)))

# Sources, as config names them.

srcs_of = $(shell sed -n '/^KUBE_$(1)_SRCS="$$/,/^"$$/s/^ *\(.*\.c\)$$/\1/p' \
    config)
LIB_SRCS := $(foreach l,$(LAYERS),$(call srcs_of,$(shell echo $(l) | tr a-z A-Z)))
CLI_SRCS := $(wildcard src/cli/*.c)
SO_SRCS := $(wildcard src/lib/*.c)
LIB_OBJS = $(LIB_SRCS:src/%.c=$(OUT)/obj/%.o)
SO_OBJS = $(SO_SRCS:src/%.c=$(OUT)/obj/%.o)
CLI_OBJS = $(CLI_SRCS:src/%.c=$(OUT)/obj/%.o)

T ?= *
UNIT_SRCS = $(wildcard t/unit/test_$(T).c)
UNIT_AIDS = $(filter-out $(wildcard t/unit/test_*.c),$(wildcard t/unit/*.c))
UNIT_BINS = $(UNIT_SRCS:t/unit/%.c=$(OUT)/unit/%)
UNIT_AID_OBJS = $(UNIT_AIDS:t/unit/%.c=$(OUT)/unit/%.o)

# The targets of t/fuzz over their seeds, without libFuzzer: T=fuzz_select.

CORPUS_SRCS = $(wildcard t/fuzz/$(if $(filter $(T),*),fuzz_*,$(T)).c)
CORPUS_BINS = $(CORPUS_SRCS:t/fuzz/%.c=$(OUT)/unit/%)
CORPUS_INC = $(INC_cli) -It/fuzz -It/unit

# The simulator: its own build of the zone has failpoints.

SIM_SRCS = $(filter-out t/sim/sim_main.c,$(wildcard t/sim/*.c))
SIM_OBJS = $(SIM_SRCS:t/sim/%.c=$(OUT)/sim/%.o) \
    $(patsubst src/zone/%.c,$(OUT)/sim/zone/%.o,$(filter src/zone/%,$(LIB_SRCS)))
SIM_WRAP = $(shell sed -n 's/^BESIDE.*, \(kube_[a-z_]*\),.*/-Wl,--wrap=\1/p' \
    t/sim/sim_beside.c)

# What the tests see.  Sanitizers: nginx itself frees nothing at exit, and each
# of its modules defines ngx_module_names.

TEST_ENV = KUBE_BUILD_DIR=$(abspath $(OUT)) KUBE_BUILD=$(BUILD) \
    $(if $(filter 1,$(NGINX_BINARY) $(NGINX_STATIC)), \
        KUBE_NGINX=$(abspath $(OUT)/nginx), \
        $(if $(filter asan,$(BUILD)),KUBE_NGINX=$(abspath t/util/nginx-asan.sh)))
ifeq ($(BUILD),asan)
TEST_ENV += ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 \
    UBSAN_OPTIONS=print_stacktrace=1
endif

SUBMAKE = $(MAKE) --no-print-directory
DEPS = @sh t/util/deps.sh


.PHONY: bench-programs help matrix sim build modules lib cli demo demo-cluster test proof converge \
    model mutants unit tsan arm unit-run instructions bench bench-smoke \
    bench-decode fuzz fuzz-coverage ring2 e2e testbed lint sources sizes \
    bare nginx-src install install-lib package clean

help: ## print this text
	@echo "usage: make [target] [VARIABLE=value]"
	@echo
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) \
	    | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'
	@echo
	@sed -n 's/^#: //p' $(MAKEFILE_LIST)

#:   BUILD=release|debug|asan   flavour; the results are in build/<BUILD>/
#:   NGINX_SRC=dir              build against this source tree (nginx,
#:                              OpenResty's nginx, Angie), not nginx-dev
#:   NGINX_BINARY=1             with NGINX_SRC: build that nginx as well
#:   NGINX_STATIC=1             the same, with the modules linked in
#:   NGINX_CONFIGURE_ARGS=...   more arguments for nginx's configure
#:   SKIP_DEPS=1                install no Debian packages
#:   JOBS=4                     so many compilers, unit tests or mutants at once, not two
#:   OUT=dir                    build there
#:   T=reflector                unit, tsan, arm: this module's tests only
#:   CHECK="style tidy"         lint: these checks only
#:   SEED=7 SEEDS=100           sim: the first seed, and how many
#:   SIM_ARGS=...               sim: more arguments (t/sim/sim_main.c)
#:   M="a-word"                 mutants: those with the word in their line
#:   PYTEST_ARGS=...            test, ring2, e2e: more arguments for pytest
#:   PYTEST_PROCESSES=1         test, ring2: this many pytest processes, not four
#:   TESTS=t/test_http.py       matrix: these files, or file::class::test
#:   STEPS="build demo"         bare: these steps, of build demo install test
#:   BUILDS="dir ..."           instructions: these builds, not OUT
#:   BENCH_ARGS=...             instructions, bench: more arguments
#:   PORT=8081                  demo: nginx listens there
#:   KUBECONFIG=file            demo: use this cluster (the environment's
#:                              KUBECONFIG is not used)
#:   ALLOW_SKIP=1               e2e: having no Go is not a failure; arm: nor is
#:                              having no cross compiler
#:   KUBE_VERSION=1.33          e2e: this control plane, of those that have a
#:                              t/cluster/go-VERSION.mod, not go.mod's

# One build at a time in one directory: two would clobber each other.

build: ## the three modules, kube-informer and libkube, in build/<BUILD>/
	$(DEPS) build
	@mkdir -p $(OUT)
	@+flock $(OUT)/.lock $(SUBMAKE) -j$(JOBS) lib cli modules

modules: export NGINX_CFLAGS = $(OPT_$(BUILD))
modules: export NGINX_LDFLAGS = $(LD_$(BUILD))
modules: export CC := $(CC)
modules: export JOBS := $(JOBS)
modules: export NGINX_SRC := $(NGINX_SRC)
modules: export NGINX_BINARY := $(NGINX_BINARY)
modules: export NGINX_STATIC := $(NGINX_STATIC)
modules: export NGINX_CONFIGURE_ARGS := $(NGINX_CONFIGURE_ARGS)
modules:
	@mkdir -p $(OUT)
	@MAKEFLAGS= bash t/util/nginx.sh $(OUT)

lib: $(OUT)/libkube.a $(if $(filter release debug,$(BUILD)),$(OUT)/$(SONAME)) ; @:

cli: $(if $(CLI_SRCS),$(OUT)/kube-informer) ## the command line informer alone
	@:

$(OUT)/libkube.a: $(LIB_OBJS) $(SO_OBJS) config
	@rm -f $@
	@$(AR) rcs $@ $(LIB_OBJS) $(SO_OBJS)
	@echo "built $@"

$(OUT)/$(SONAME): $(SO_OBJS) $(OUT)/libkube.a src/lib/libkube.map
	@$(CC) -shared $(OPT_$(BUILD)) $(LD_$(BUILD)) -Wl,-z,defs \
	    -Wl,-soname,$(SONAME) -Wl,--version-script=src/lib/libkube.map \
	    -o $@ $(SO_OBJS) $(OUT)/libkube.a $(LIBS)
	@echo "built $@"

$(OUT)/kube-informer: $(CLI_OBJS) $(OUT)/libkube.a
	@$(CC) $(OPT_$(BUILD)) $(LD_$(BUILD)) -o $@ $^ $(LIBS)
	@echo "built $@"

$(OUT)/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	@$(CC) $(STD) $(WARN) $(OPT_$(BUILD)) $(PIC) -MMD -MP \
	    $(INC_$(firstword $(subst /, ,$*))) -c -o $@ $<

-include $(LIB_OBJS:.o=.d) $(SO_OBJS:.o=.d) $(CLI_OBJS:.o=.d)

# What stands on the command line; the environment's KUBECONFIG is a cluster
# that nobody meant.

given = $(if $(filter command,$(origin $(1))),$(2) $($(1)))

demo: ## a stand-in cluster and nginx on http://127.0.0.1:8080/
	$(DEPS) demo
	@$(SUBMAKE) build SKIP_DEPS=1
	@exec env $(TEST_ENV) $(PYTHON) t/demo/demo.py $(call given,PORT,--port) \
	    $(call given,KUBECONFIG,--kubeconfig)

demo-cluster: ## the same on a real kube-apiserver (needs root and Go)
	$(DEPS) demo e2e
	@$(SUBMAKE) build SKIP_DEPS=1
	@$(SUBMAKE) testbed
	@exec env $(TEST_ENV) $(TESTBED_ENV) $(PYTHON) t/demo/demo.py --cluster $(call given,PORT,--port)

test: ## unit tests, and nginx against the stand-in API server
	$(DEPS) test
	@$(SUBMAKE) unit SKIP_DEPS=1
	@$(SUBMAKE) build SKIP_DEPS=1
	@$(SUBMAKE) ring2
	@echo "make test: passed"

# What takes minutes, or loads the machine.  A unit test does more where the
# environment says KUBE_PROOF=1.

PROOF_TESTS = $(wildcard t/proof/test_*.py)

proof: ## on demand: the long forms of the tests, t/proof among them
	$(DEPS) test
	@KUBE_PROOF=1 UNIT_TIMEOUT=1800 $(SUBMAKE) unit SKIP_DEPS=1
	@$(SUBMAKE) tsan SKIP_DEPS=1 T='zone*'
	@$(SUBMAKE) sim SKIP_DEPS=1 SIM_ARGS="--events 15000000 --least 100"
	@$(SUBMAKE) model
	@$(SUBMAKE) build SKIP_DEPS=1
	@$(if $(PROOF_TESTS),KUBE_PROOF=1 $(TEST_ENV) $(PYTHON) -m pytest -q \
	    $(PROOF_TESTS) $(PYTEST_ARGS),echo "make proof: t/proof is empty")
	@$(SUBMAKE) mutants SKIP_DEPS=1
	@$(SUBMAKE) bench-smoke SKIP_DEPS=1
	@echo "make proof: passed"

# The explorer comes from crates.io at its first use: Cargo.lock names it.

model: ## on demand: the zone's protocol under loom (needs cargo, 1.63 or newer)
	$(DEPS) model
	@mkdir -p build/model
	@cd t/model && cargo run --quiet --locked --target-dir $(abspath build/model)

# One seed with its trace: SEED=7 SIM_ARGS=--verbose.  What fails says how.

SEED ?= 1
SEEDS ?= 1000

sim: ## API servers, processes and time simulated out of SEED, SEEDS runs; SIM_ARGS
	$(DEPS) unit
	@$(SUBMAKE) lib
	@+flock $(OUT)/.lock $(SUBMAKE) -j$(JOBS) $(OUT)/sim/sim
	@$(OUT)/sim/sim --seed $(SEED) --seeds $(if $(call given,SEED,x),$(if \
	    $(call given,SEEDS,x),$(SEEDS),1),$(SEEDS)) $(SIM_ARGS)

mutants: ## on demand: plant bugs and see the unit tests find each; M="word" for some
	$(DEPS) unit
	@$(PYTHON) t/util/mutants.py --jobs $(JOBS) $(M)

converge: ## on demand: kube-informer beside client-go, t/converge (needs Go)
	$(DEPS) test
	@$(SUBMAKE) build SKIP_DEPS=1
	@$(TEST_ENV) $(PYTHON) -m pytest -q t/proof/test_converge.py $(PYTEST_ARGS)

handlers-beside: ## on demand: handlers beside client-go's, 200 000 changes (needs Go)
	$(DEPS) test
	@$(SUBMAKE) build SKIP_DEPS=1
	@$(TEST_ENV) $(PYTHON) -m pytest -q -s t/proof/test_handlers.py $(PYTEST_ARGS)

unit: ## unit tests of src/, with gcc's address and undefined sanitizers
	$(DEPS) unit
	@mkdir -p $(UNIT_OUT)
	@+flock $(UNIT_OUT)/.lock $(SUBMAKE) -j$(JOBS) BUILD=asan OUT=$(UNIT_OUT) \
	    unit-run

# Without T= those that start threads: in the others there is nothing to find.
# TSan of gcc 12 fails on kernels that randomise more bits than it expects.

TSAN_SRCS = $(if $(filter $(T),*), \
    $(shell grep -l pthread_create t/unit/test_zone*.c),$(UNIT_SRCS))

tsan: ## unit tests of the zone under ThreadSanitizer: those with threads; T=zone_table for one
	$(DEPS) unit
	@mkdir -p build/tsan
	@+flock build/tsan/.lock setarch -R $(SUBMAKE) -j$(JOBS) BUILD=tsan \
	    OUT=build/tsan UNIT_SRCS="$(strip $(TSAN_SRCS))" CORPUS_SRCS= unit-run

arm: ## on demand: the unit tests on aarch64, by a cross compiler and qemu-user; T=simd
	$(DEPS) arm
	@mkdir -p build/arm
	@+T='$(T)' JOBS=$(JOBS) ALLOW_SKIP=$(ALLOW_SKIP) \
	    flock build/arm/.lock bash t/util/arm.sh build/arm

unit-run: $(UNIT_BINS) $(CORPUS_BINS)
	@bash t/util/headers.sh
	@JOBS=$(JOBS) sh t/util/unit.sh $(sort $(UNIT_BINS) $(CORPUS_BINS))

$(OUT)/unit/%.o: t/unit/%.c Makefile
	@mkdir -p $(@D)
	@$(CC) $(STD) $(WARN_TEST) $(OPT_$(BUILD)) -MMD -MP $(INC_cli) \
	    -Isrc/lib -It/unit -c -o $@ $<

$(OUT)/unit/test_%: $(OUT)/unit/test_%.o $(UNIT_AID_OBJS) $(OUT)/libkube.a
	@$(CC) $(OPT_$(BUILD)) $(LD_$(BUILD)) -o $@ $^ -lcmocka $(LIBS)

$(OUT)/unit/%.o: t/fuzz/%.c Makefile
	@mkdir -p $(@D)
	@$(CC) $(STD) $(WARN_TEST) $(OPT_$(BUILD)) -MMD -MP $(CORPUS_INC) -c -o $@ $<

$(OUT)/unit/fuzz_%: $(OUT)/unit/fuzz_%.o $(OUT)/unit/corpus_main.o $(OUT)/libkube.a
	@$(CC) $(OPT_$(BUILD)) $(LD_$(BUILD)) -o $@ $^ $(LIBS)

$(OUT)/sim/%.o: t/sim/%.c Makefile
	@mkdir -p $(@D)
	@$(CC) $(STD) $(WARN_TEST) $(OPT_$(BUILD)) -MMD -MP -DKUBE_FAILPOINTS \
	    -DKUBE_ZONE_PAUSES $(INC_cli) -Isrc/cache -c -o $@ $<

$(OUT)/sim/zone/%.o: src/zone/%.c Makefile
	@mkdir -p $(@D)
	@$(CC) $(STD) $(WARN) $(OPT_$(BUILD)) -MMD -MP -DKUBE_FAILPOINTS \
	    -DKUBE_ZONE_PAUSES $(INC_zone) -c -o $@ $<

$(OUT)/sim/sim: $(OUT)/sim/sim_main.o $(SIM_OBJS) $(OUT)/libkube.a
	@$(CC) $(OPT_$(BUILD)) $(LD_$(BUILD)) $(SIM_WRAP) -o $@ $^ $(LIBS)

$(OUT)/unit/test_sim: $(OUT)/unit/test_sim.o $(SIM_OBJS) $(OUT)/libkube.a
	@$(CC) $(OPT_$(BUILD)) $(LD_$(BUILD)) $(SIM_WRAP) -o $@ $^ -lcmocka $(LIBS)

.PRECIOUS: $(OUT)/unit/%.o
-include $(wildcard $(OUT)/sim/*.d $(OUT)/sim/zone/*.d)
-include $(wildcard $(OUT)/unit/*.d)

# Most tests wait most of their time: more processes than processors.  A file
# stays in one process.

PYTEST_PROCESSES ?= 4

ring2: ## of "make test" the part that needs nginx, with what is built; PYTEST_ARGS
	@$(TEST_ENV) $(PYTHON) -m pytest -q -n $(PYTEST_PROCESSES) --dist loadfile \
	    t/test_*.py $(PYTEST_ARGS)

e2e: ## nginx against a real control plane, in a network namespace (root, Go)
	$(DEPS) e2e
	@if $(GO) version >/dev/null 2>&1; then \
	    $(SUBMAKE) build SKIP_DEPS=1 \
	    && $(SUBMAKE) testbed \
	    && $(TEST_ENV) $(TESTBED_ENV) \
	       $(PYTHON) -m pytest -q t/e2e $(PYTEST_ARGS) \
	    && echo "make e2e: passed"; \
	else \
	    echo; \
	    echo "***** SKIPPED ring 3: no Go here; the control plane is built" \
	         "from its Go module *****"; \
	    echo; \
	    test "$(ALLOW_SKIP)" = 1; \
	fi

# Kubernetes' version: that of t/cluster/go.mod, or one with a go-VERSION.mod.

KUBE_VERSION ?=
TESTBED = bin/$(if $(KUBE_VERSION),$(KUBE_VERSION)/)kube-testbed
TESTBED_ENV = $(if $(KUBE_VERSION),KUBE_TESTBED=$(abspath t/cluster/$(TESTBED)))

testbed:
	@$(GO) version | awk '{ split(substr($$3, 3), v, "."); \
	    exit !(v[1] > 1 || v[2] >= 21) }' \
	    || { echo "t/cluster needs Go 1.21 or newer"; exit 1; }
	@cd t/cluster && $(GO) build -buildvcs=false -o $(TESTBED) \
	    $(if $(KUBE_VERSION),-modfile=go-$(KUBE_VERSION).mod) . \
	&& $(GO) build -buildvcs=false -o bin/decode ./decode

instructions: ## count instructions per event and request; BUILDS="dir dir" compares
	$(DEPS) test
	@$(if $(BUILDS),:,$(SUBMAKE) build SKIP_DEPS=1)
	@$(TEST_ENV) $(PYTHON) bench/instructions.py \
	    $(foreach dir,$(or $(BUILDS),$(OUT)),--build $(dir)) $(BENCH_ARGS)

# What they find stays in build/fuzz, as does what they learnt.

FUZZ_SECONDS ?= 60
FUZZ_FLAGS = -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined \
    -fno-sanitize-recover=undefined -DKUBE_DEBUG=1
FUZZ = $(patsubst t/fuzz/fuzz_%.c,%,$(wildcard t/fuzz/fuzz_*.c))

fuzz: ## on demand: the targets of t/fuzz, FUZZ_SECONDS=60 each; FUZZ=decode for one
	$(DEPS) fuzz
	@mkdir -p build/fuzz
	@+flock build/fuzz/.lock $(SUBMAKE) -j$(JOBS) lib CC=clang BUILD=asan WARN= \
	    OUT=build/fuzz OPT_asan="$(FUZZ_FLAGS) -fsanitize=fuzzer-no-link"
	@for f in $(FUZZ); do \
	    mkdir -p build/fuzz/corpus/$$f; \
	    clang $(STD) $(FUZZ_FLAGS) -fsanitize=fuzzer $(CORPUS_INC) \
	        -o build/fuzz/$$f t/fuzz/fuzz_$$f.c build/fuzz/libkube.a $(LIBS) \
	    && build/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=20 \
	        -artifact_prefix=build/fuzz/$$f- -print_final_stats=1 \
	        $$(test ! -f t/fuzz/$$f.dict || echo -dict=t/fuzz/$$f.dict) \
	        build/fuzz/corpus/$$f $$(ls -d t/fuzz/corpus/$$f 2>/dev/null) \
	        >build/fuzz/$$f.log 2>&1 \
	    || { tail -40 build/fuzz/$$f.log; exit 1; }; \
	    echo "fuzz $$f: $$(sed -n 's/^stat::number_of_executed_units: *//p' \
	        build/fuzz/$$f.log) inputs, nothing found"; \
	done

# Once over the seeds and what "make fuzz" has learnt; the programs of clang
# alone, for those of another version read no profile of its.

FUZZ_COVER = -g -O1 -fprofile-instr-generate -fcoverage-mapping -DKUBE_DEBUG=1
FUZZ_COVERED = $(wildcard src/api/kube_decode*.c src/api/kube_envelope.c \
    src/api/kube_frame.c src/api/kube_json.c src/api/kube_lexer.c \
    src/api/kube_protobuf*.c)
LLVM = $$(clang -print-prog-name=$(1))

fuzz-coverage: ## on demand: the decoder's lines that the targets of t/fuzz come to
	$(DEPS) fuzz
	@mkdir -p build/cover
	@+$(SUBMAKE) -j$(JOBS) lib CC=clang BUILD=asan WARN= OUT=build/cover \
	    OPT_asan="$(FUZZ_COVER) -fsanitize=fuzzer-no-link"
	@for f in $(FUZZ); do \
	    mkdir -p build/fuzz/corpus/$$f; \
	    clang $(STD) $(FUZZ_COVER) -fsanitize=fuzzer $(CORPUS_INC) \
	        -o build/cover/$$f t/fuzz/fuzz_$$f.c build/cover/libkube.a $(LIBS) \
	    && LLVM_PROFILE_FILE=build/cover/$$f.raw build/cover/$$f -runs=0 \
	        build/fuzz/corpus/$$f $$(ls -d t/fuzz/corpus/$$f 2>/dev/null) \
	        >build/cover/$$f.log 2>&1 \
	    || { tail -40 build/cover/$$f.log; exit 1; }; \
	done
	@$(call LLVM,llvm-profdata) merge -o build/cover/profile \
	    $(FUZZ:%=build/cover/%.raw)
	@$(call LLVM,llvm-cov) report build/cover/decode \
	    $(FUZZ:%=-object build/cover/%) $(FUZZ_COVERED) \
	    -instr-profile=build/cover/profile \
	    | awk '$$1 ~ /[.]c$$|^TOTAL$$/ { printf "%-28s %6d lines %8s\n", \
	                                          $$1, $$8, $$10 }'

# Lists as an API server's own serializer writes them; its types are t/cluster's.

BENCH = build/bench

BENCH_WITH = --program $(OUT)/kube-informer --peer $(BENCH)/follow \
    --lists $(BENCH)/lists --data $(BENCH)/data
BENCH_RUN = $(PYTHON) bench/run.py $(BENCH_WITH)
BENCH_LATENCY = $(PYTHON) bench/latency.py $(BENCH_WITH) \
    --reader $(BENCH)/reader
BENCH_TRANSPORT = $(PYTHON) bench/transport.py $(BENCH_WITH)
BENCH_ZONE = $(PYTHON) bench/zone.py $(BENCH_WITH)
BENCH_APISERVER = GO=$(GO) $(TESTBED_ENV) $(PYTHON) bench/apiserver.py \
    --program $(OUT)/kube-informer --peer $(BENCH)/follow

bench: bench-programs testbed ## on demand: ours beside client-go, writes bench/RESULTS.md (needs Go)
	@$(BENCH_RUN) --out bench/RESULTS.md $(BENCH_ARGS)
	@$(BENCH_LATENCY) --append bench/RESULTS.md
	@$(BENCH_TRANSPORT) --append bench/RESULTS.md
	@$(BENCH_ZONE) --append bench/RESULTS.md
	@$(BENCH_APISERVER) --append bench/RESULTS.md
	@$(SUBMAKE) build SKIP_DEPS=1
	@$(TEST_ENV) $(PYTHON) bench/instructions.py --build $(OUT) \
	    --append bench/RESULTS.md --calls

bench-smoke: ## on demand: does "make bench" run?  Says nothing of speed
	@if $(GO) version >/dev/null 2>&1; then \
	    $(SUBMAKE) bench-programs \
	    && $(BENCH_RUN) --sizes 20 --events 50 --rounds 1 \
	    && $(BENCH_LATENCY) --sizes 20 --events 50 --rounds 1 \
	    && $(BENCH_TRANSPORT) --sizes 20 --events 50 --rounds 1 \
	    && $(BENCH_ZONE) --sizes 20 --events 50 --rounds 1 \
	    && $(SUBMAKE) testbed \
	    && $(BENCH_APISERVER) --slices 20 --events 50 --rounds 1; \
	else \
	    echo "bench-smoke: SKIPPED, there is no Go" >&2; \
	fi

bench-programs:
	$(DEPS) test e2e
	@$(SUBMAKE) cli
	@mkdir -p $(BENCH)
	@cd t/cluster && $(GO) build -buildvcs=false -o $(abspath $(BENCH))/ ./lists ./follow
	@$(CC) $(STD) $(WARN_TEST) $(OPT_$(BUILD)) $(INC_cli) \
	    -o $(BENCH)/reader bench/reader.c $(OUT)/libkube.a $(LIBS)

# callgrind counts each byte of a "rep movsb" or "rep stosb" as an instruction:
# memcpy() and memset() have another way.

bench-decode: export GLIBC_TUNABLES = glibc.cpu.x86_rep_movsb_threshold=0x40000000:glibc.cpu.x86_rep_stosb_threshold=0x40000000
bench-decode: ## on demand: time of decoding a list, beside cJSON (needs Go, valgrind)
	@$(SUBMAKE) lib
	@mkdir -p $(BENCH)/10000 $(BENCH)/500
	@cd t/cluster && for n in 10000 500; do \
	    $(GO) run -buildvcs=false ./lists -slices $$n -events 1 \
	        -dir $(abspath $(BENCH))/$$n || exit 1; \
	done
	@$(CC) $(STD) $(WARN_TEST) $(OPT_$(BUILD)) $(INC_cli) \
	    -o $(BENCH)/decode bench/decode.c $(OUT)/libkube.a $(LIBS)
	@$(BENCH)/decode $(BENCH)/10000/slices $(BENCH)/10000/services
	@for stage in memchr frame decode results protobuf_results list protobuf_list cjson; do \
	    valgrind --quiet --tool=callgrind --callgrind-out-file=$(BENCH)/out \
	        --toggle-collect="bench_run_$$stage*" $(BENCH)/decode -i \
	        $(BENCH)/500/slices $(BENCH)/500/services >/dev/null \
	    && awk -v stage=$$stage '/^(summary|totals):/ { \
	        printf "%-16s %8.0f instructions an endpoint\n", stage, $$2 / 5000; \
	        exit }' $(BENCH)/out || exit 1; \
	done

lint: ## style, layers, symbols, static analysis, examples; prints sizes
	$(DEPS) lint
	@$(SUBMAKE) build SKIP_DEPS=1
	@KUBE_BUILD_DIR=$(abspath $(OUT)) GO=$(GO) bash t/util/lint.sh $(CHECK)

sources: ## write the source lists of config anew from the folders
	@$(PYTHON) t/util/sources.py --write

sizes: ## lengths and complexity of functions and files
	@$(PYTHON) t/util/sizes.py

matrix: ## on demand: other nginx source trees, NGINX_TREES="dir ..."
	$(DEPS) test
	@JOBS=$(JOBS) PYTHON=$(PYTHON) PYTEST_PROCESSES=$(PYTEST_PROCESSES) \
	    bash t/util/matrix.sh build/matrix \
	    $(NGINX_TREES)

bare: ## on demand: README and "make test" on a bare Debian, DEBIAN="bookworm trixie"
	$(DEPS) bare
	@bash t/util/chroot.sh $(or $(BARE),build/bare) $(DEBIAN)

nginx-src: ## Debian's nginx sources in build/nginx-src, for NGINX_SRC
	@bash t/util/nginx-src.sh build/nginx-src

install: ## modules to $(DESTDIR)$(MODULES_DIR), command to $(prefix)/bin
	@$(SUBMAKE) build
	install -d $(DESTDIR)$(MODULES_DIR) $(DESTDIR)$(prefix)/bin
	install -m 644 $(OUT)/ngx_kube_module.so $(OUT)/ngx_http_kube_module.so \
	    $(OUT)/ngx_stream_kube_module.so $(DESTDIR)$(MODULES_DIR)
	install -m 755 $(OUT)/kube-informer $(DESTDIR)$(prefix)/bin

OUR_VERSION = sed -n 's/.*KUBE_VERSION  "\(.*\)".*/\1/p' src/base/kube_version.h

# A program's own build finds it by pkg-config.  strip is the packager's.

install-lib: ## libkube.so, kube.h, kube.pc and kube(3) below $(DESTDIR)$(prefix)
	@$(SUBMAKE) build
	install -d $(DESTDIR)$(libdir)/pkgconfig $(DESTDIR)$(prefix)/include/kube \
	    $(DESTDIR)$(prefix)/share/man/man3
	install -m 644 $(OUT)/$(SONAME) $(DESTDIR)$(libdir)
	ln -sf $(SONAME) $(DESTDIR)$(libdir)/libkube.so
	install -m 644 src/lib/kube.h $(DESTDIR)$(prefix)/include/kube
	install -m 644 src/lib/kube.3 $(DESTDIR)$(prefix)/share/man/man3
	sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' \
	    -e "s|@version@|$$($(OUR_VERSION))|" \
	    src/lib/kube.pc.in >$(DESTDIR)$(libdir)/pkgconfig/kube.pc
	chmod 644 $(DESTDIR)$(libdir)/pkgconfig/kube.pc

# Of what "make build" makes, for this Debian's nginx or that of NGINX_SRC.

PACKAGES ?= build

package: ## build/nginx-kube-informer_*.deb of what install and install-lib put
	@rm -rf $(PACKAGES)/package
	@$(SUBMAKE) install install-lib DESTDIR=$(abspath $(PACKAGES))/package \
	    prefix=/usr
	@$(if $(NGINX_SRC),PACKAGE_NGINX=) bash t/util/package.sh \
	    $(PACKAGES)/package "$$($(OUR_VERSION))" $(PACKAGES)

clean: ## remove what was built
	rm -rf build t/cluster/bin
