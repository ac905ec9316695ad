# One command for each thing. The names are a contract: people and CI call them.
SHELL := /bin/bash
CARGO ?= cargo
PREFIX ?= /usr/local
CONSOLE ?= 127.0.0.1:8080
target := $(or $(CARGO_TARGET_DIR),target)
.DEFAULT_GOAL := help

# Release builds know which code a node under load executes (profile-guided optimization, lab/profile): that code lies together. Functions that
# changed since are compiled without it. What CI builds, debug builds and `make run` do without.
pgo = -Cprofile-use=$(CURDIR)/packaging/profile/barnabas.profdata -Cllvm-args=-no-pgo-warn-mismatch -Clink-arg=-Wl,-z,keep-text-section-prefix
export RUSTFLAGS := $(pgo)
export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/lab/profile/rustc
help run test profile sim-coverage: override RUSTFLAGS =
help run test profile sim-coverage: override RUSTC_WORKSPACE_WRAPPER =

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build, start one node on loopback with data in ./barnabas-data and its console on port 8080 (CONSOLE=127.0.0.1:8081; empty: none)
	@exec $(CARGO) run --profile quick --locked -p barnabas -- server $(if $(CONSOLE),--override console.listener=$(CONSOLE))

cluster: ## three nodes on loopback in a temporary directory, and how to watch one be killed
	@$(CARGO) build --release --locked -p barnabas
	@lab/cluster/run

# The stripped binary, and its debug file, which a debugger finds beside it. Neither names a folder of this machine, so that a build elsewhere is
# the same bytes; that takes a target folder of its own, since its flags would build everything else a second time.
dist_target = $(abspath $(target))/dist/build
cargo_home = $(or $(CARGO_HOME),$(HOME)/.cargo)
binary: override RUSTFLAGS = $(pgo) --remap-path-prefix=$(CURDIR)=/barnabas --remap-path-prefix=$(cargo_home)=/cargo
binary: export CFLAGS = -ffile-prefix-map=$(dist_target)=/target -ffile-prefix-map=$(cargo_home)=/cargo
binary:
	@$(CARGO) build --release --locked -p barnabas --target-dir $(dist_target)
	@objcopy --only-keep-debug $(dist_target)/release/barnabas $(target)/dist/barnabas.debug
	@cd $(target)/dist && objcopy --strip-all --add-gnu-debuglink=barnabas.debug $(dist_target)/release/barnabas barnabas
	@cd $(target)/dist && ./barnabas version && du -m barnabas barnabas.debug | awk '{printf "%s: %s MiB\n", $$2, $$1}'

dist: binary ## a release in target/dist: the stripped binary, its debug file, packages, SBOM, SHA256SUMS
	@packaging/dist --binary $(target)/dist/barnabas --debug $(target)/dist/barnabas.debug --out $(target)/dist/packages

install: binary ## the release binary in PREFIX/bin (PREFIX=/usr/local; DESTDIR for packages)
	@install -D -m 755 $(target)/dist/barnabas $(DESTDIR)$(PREFIX)/bin/barnabas
	@echo "installed $(DESTDIR)$(PREFIX)/bin/barnabas"

dist-test: binary ## each package in an empty root: first record, upgrade and back, the unit, the image, the chart (root, Debian; ARGS="--only deb")
	@lab/dist/run --binary $(abspath $(target))/dist/barnabas $(ARGS)

profile: ## packaging/profile/barnabas.profdata once more, from nodes under load (15 minutes, most of it the build; needs rustup component llvm-tools)
	@lab/profile/run

test: ## everything that CI runs
	@lab/test

nightly: ## the rigs in their long forms, one after the other (hours; ONLY="chaos|simulation" runs some, CONTINUE=1 goes on)
	@lab/nightly

compat: ## client × scenario, beside Apache Kafka
	@$(CARGO) build --release --locked -p barnabas
	@lab/compat/run --full

compat-groups: ## KIP-848 groups, transactions, share groups: Java, librdkafka, franz-go, beside Apache Kafka (about 10 minutes)
	@$(CARGO) build --release --locked -p barnabas
	@lab/compat/run --groups $(ARGS)
	@lab/compat/wrong/run

telemetry: ## Java, librdkafka and franz-go push their metrics (KIP-714); the metrics page shows them (a minute)
	@$(CARGO) build --release --locked -p barnabas
	@lab/telemetry/run $(ARGS)

dashboards: ## Prometheus reads a loaded cluster: public dashboards' metrics, our dashboards and alert rules (2 minutes)
	@$(CARGO) build --release --locked -p barnabas
	@lab/dashboards/run $(ARGS)

compat-tools: ## kafka-consumer-groups, -groups, -share-groups, -streams-groups, -transactions: every answer beside Apache Kafka's, then Barnabas's own tools beside Apache's (9 minutes)
	@$(CARGO) build --release --locked -p barnabas
	@lab/compat/tools/run $(ARGS)
	@lab/compat/tools/run --native $(ARGS)

book-test: ## each command of docs/operations, docs/SECURITY.md, docs/CONNECT.md and docs/QUEUES.md against the built binary; Apache Kafka's jars, Artemis and a KDC for six pages (8 minutes; QUICK=1: one, without them; ARGS="--only nodes/")
	@$(CARGO) build --release --locked -p barnabas
	@QUICK=$(QUICK) lab/book/run $(ARGS)

book: ## docs/operations as a static site with a search, for reading offline: target/book/index.html (mdBook, built once into the user's cache)
	@lab/book/site

doctor-test: ## barnabas doctor: a healthy cluster under load has no finding; planted faults are found, mended by the printed command, gone (15 minutes; MINUTES=10)
	@$(CARGO) build --release --locked -p barnabas
	@lab/doctor/run --minutes $(or $(MINUTES),10) $(ARGS)

compat-security: ## logins, tokens, ACLs (API × operation × resource × pattern × permission; random ones) and their tools, beside Apache Kafka (ARGS="--only logins")
	@$(CARGO) build --release --locked -p barnabas -p barnabas-issuer
	@$(CARGO) build --release --locked -p barnabas-security --example verdicts
	@lab/compat/security/run $(ARGS)

compat-apache: ## Apache Kafka's published tests on clusters of ours, beside Apache's own (ARGS="--only JoinGroup*"; all of them: about an hour)
	@$(CARGO) build --release --locked -p barnabas
	@lab/compat/apache_tests/run $(ARGS)

attack: ## thirty-four attacks on a node and on Apache Kafka: memory, a good producer's p99, does it live (35 minutes; ARGS="--only vote,bomb-zstd --ours"; ARGS=--planted: rows that must fail)
	@$(CARGO) build --release --locked -p barnabas
	@lab/attack/run $(ARGS)

kafka-dirs: ## Kafka 3.9 → Barnabas → Kafka 4 → Barnabas on one data directory (about 5 minutes)
	@$(CARGO) build --release --locked -p barnabas
	@lab/compat/dirs/run

streams-story: ## Kafka Streams' word count, exactly once, broker and Streams killed ten times each (PROTOCOL=streams for KIP-1071; 5 minutes)
	@$(CARGO) build --release --locked -p barnabas
	@lab/compat/stories/run streams --protocol $(or $(PROTOCOL),classic) $(ARGS)

connect-story: ## Kafka Connect, exactly once: file, topic, mirror, file, with workers and the broker killed (3 minutes)
	@$(CARGO) build --release --locked -p barnabas
	@lab/compat/stories/run connect $(ARGS)

security-story: ## a plaintext cluster of three under load becomes TLS, SCRAM and ACLs, then every certificate and password is replaced (3 minutes; ARGS="--quick")
	@$(CARGO) build --release --locked -p barnabas -p barnabas-issuer
	@lab/compat/stories/run security $(ARGS)

bridge-story: ## a queue of Apache Artemis, a topic, another queue, through 30 kills -9 of bridge, node and Artemis (3 minutes; ARGS="--quick")
	@$(CARGO) build --release --locked -p barnabas
	@lab/bridge/run $(ARGS)

compat-queues: ## Qpid Proton, rhea and Qpid JMS against the AMQP listener, and against Apache Artemis; IBM's client against the MQ listener; kills -9 under both (12 minutes; ARGS="--clients proton --alone")
	@$(CARGO) build --release --locked -p barnabas
	@lab/queues/run $(ARGS)

chaos: ## three nodes in network namespaces, Java, librdkafka, franz-go, faults, histories judged (MINUTES=10; QUICK=1; PEER=kafka; SEED=n)
	@$(CARGO) build --release --locked -p barnabas -p barnabas-history
	@MINUTES=$(MINUTES) QUICK=$(QUICK) PEER=$(PEER) SEED=$(SEED) NODES=$(NODES) lab/compat/history/run $(ARGS)

mixed: ## Apache Kafka's brokers and controllers and ours in one cluster, all under load, all compared (20 minutes; QUICK=1: two; ARGS=--security: TLS and logins between them, four)
	@$(CARGO) build --release --locked -p barnabas
	@QUICK=$(QUICK) lab/compat/mixed/run $(ARGS)

kill-story: ## a million lines of a real log through ten kills
	@$(CARGO) build --release --locked -p barnabas
	@lab/kill/run

power-cut: ## 200 power cuts under load on ext4 and on XFS each (root, loop mounts, 3 GiB in TMPDIR; about 15 minutes)
	@lab/faults/cut/run

disk-full: ## the story of a full disk with real clients, on ext4 and XFS, and Apache Kafka's beside it
	@$(CARGO) build --release --locked -p barnabas
	@lab/faults/full/run

kill-loop: ## 500 kills -9 of one node under a fleet of producers (about 6 minutes)
	@$(CARGO) build --release --locked -p barnabas
	@lab/faults/kill/run

sim: ## the quorum, the brokers with their disks, transactions, compaction, share groups and several log directories, simulated: SEEDS=2000 clusters that break and get well, and planted mistakes
	@QUORUM_SEEDS=$(or $(SEEDS),2000) QUORUM_THREADS=4 $(CARGO) test --release --locked -p barnabas-quorum --lib sim -- --nocapture
	@$(CARGO) run --release --locked -q -p barnabas-sim -- $(or $(SEEDS),2000)
	@$(CARGO) run --release --locked -q -p barnabas-sim -- transactions $(or $(SEEDS),2000)
	@$(CARGO) run --release --locked -q -p barnabas-sim -- compaction $(or $(SEEDS),2000)
	@set -e; for days in shares directories written waiting aside; do \
	  $(CARGO) run --release --locked -q -p barnabas-sim -- $$days $(or $(SEEDS),2000); \
	done
	@$(CARGO) test --release --locked -p barnabas-partition --lib fetcher::sim -- --nocapture
	@lab/planted/run

sim-coverage: ## the share of core/replica, core/storage and the journal that simulated brokers execute (SEEDS=400; needs rustup component llvm-tools)
	@lab/sim/coverage $(or $(SEEDS),400)

planted: ## each planted mistake is noticed: by which seed, and by what (10 minutes, most of it the build)
	@lab/planted/run $(ARGS)

damage: ## every file type, harmed in eight ways: found, named, never served (about 4 minutes)
	@lab/faults/damage/run

fuzz: ## ten minutes of hostile bytes (SECONDS_EACH=… to change)
	@lab/fuzz/run

golden: ## compare the codec with Apache's own classes, both ways
	@lab/compat/golden/run
	@lab/compat/golden/records/run
	@core/quorum/tests/kafka/run

http-test: ## the console's HTTP on a real node: each route and its answer, each route and a caller without rights, attacks (ARGS="--apache --verbose": against Apache Kafka too; 3 minutes)
	@$(CARGO) build --release --locked -p barnabas
	@lab/console/run $(ARGS)

console-test: ## the console in headless Chromium: tasks by mouse and by keys, both themes, three widths, axe (ARGS="--pictures DIR")
	@$(CARGO) build --release --locked -p barnabas
	@lab/console/page/run $(ARGS)

bench: ## the lab, short set: workloads beside Apache Kafka, report and plots (half an hour; ARGS=--skip-done goes on)
	@$(CARGO) build --release --locked -p barnabas
	@lab/bench/run --set short $(ARGS)

bench-full: ## the lab, all of it (under an hour; ARGS=--skip-done goes on, ARGS="--only speed,modes" a part)
	@$(CARGO) build --release --locked -p barnabas
	@lab/bench/run --set full $(ARGS)

bench-log: ## the log beside Apache Kafka: cost of a synced acknowledgement, many partitions, kill -9 (QUICK=1: minutes)
	@$(CARGO) build --release --locked -p barnabas
	@lab/bench/log/run

bench-coordinators: ## groups and transactions beside Apache Kafka (25 minutes; QUICK=1: two)
	@$(CARGO) build --release --locked -p barnabas -p barnabas-coordinators-load
	@lab/bench/coordinators/run $(ARGS)

bench-security: ## TLS, handshakes, ACLs and quotas beside Apache Kafka (half an hour; QUICK=1: two minutes)
	@$(CARGO) build --release --locked -p barnabas
	@lab/bench/security/run $(ARGS)

bench-cluster: ## three brokers beside three of Apache Kafka: throughput, kills, restarts, moves (45 minutes; QUICK=1: three)
	@$(CARGO) build --release --locked -p barnabas
	@lab/bench/cluster/run $(ARGS)

bench-tail: ## the tail of steady loads beside Apache Kafka: why the slowest are slow (FULL=1: ten minutes a turn; ROWS=REGEX; ARGS=--skip-done goes on)
	@lab/bench/tail/run $(ARGS)

mq-study: ## queues and topics: IBM's client on the MQ listener, the bridge and Connect beside Artemis: CPU, requests, latency, backlog (8 minutes; FULL=1: an hour)
	@$(CARGO) build --release --locked -p barnabas
	@FULL=$(FULL) lab/bench/mq/run $(ARGS)

bench-console: ## the console: first view, long lists, search beside clients that read all, tail, idle memory (5 minutes; FULL=1: 10 million records)
	@$(CARGO) build --release --locked -p barnabas
	@lab/bench/console/run $(ARGS)

bench-node: ## size, start and cost of one node beside Apache Kafka
	@$(CARGO) build --release --locked -p barnabas
	@lab/bench/node/run

bench-memory: ## a node within 256 MB, 512 MB, 1 GB and all of the memory, beside Apache Kafka (root; 10 minutes; ARGS="--ours --runs 1")
	@$(CARGO) build --release --locked -p barnabas
	@lab/bench/memory/run $(ARGS)

density: ## a million partitions on one node, and nearly two: size, times, files
	@lab/density/run

.PHONY: help run cluster binary dist dist-test install test compat compat-groups compat-tools kafka-dirs kill-story power-cut damage fuzz golden bench bench-full bench-log bench-node bench-memory density
.PHONY: book book-test profile telemetry dashboards attack nightly planted chaos compat-apache compat-security mixed kill-loop disk-full sim streams-story connect-story bench-coordinators bench-security bench-cluster bench-tail sim-coverage http-test console-test doctor-test bridge-story compat-queues security-story mq-study bench-console
