# The commands of a developer's day. `just` lists them; each is one command that also works without just.

_list:
    @just --list --unsorted

# Serves the bundled sample on port 8080.
serve *arguments:
    cargo run --release -- serve {{arguments}}

# Format, lints and unit tests, in under three minutes when the build is warm.
quick:
    scripts/test --quick

# Everything: installs what is missing, then format, lints, docs, all tests with real servers and players.
test:
    scripts/test

# The tests of one crate, such as `just crate package`.
crate name *arguments:
    cargo test -p millpond-{{name}} {{arguments}}

# Formats all code.
fmt:
    cargo fmt --all

# The documentation of all crates, with warnings as errors.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Writes the generated pages (settings, metrics, commands) and the packages' configuration file from the declarations.
settings:
    MILLPOND_WRITE_DOCS=1 cargo test -p millpond-server --lib -- documentation:: the_page_of
    MILLPOND_WRITE_DOCS=1 cargo test -p millpond --bins the_page_of

# Makes the Debian package of a release build, and tests it in a root folder. Run as root.
package:
    cargo build --profile dist --locked -p millpond -p millpond-lab
    packaging/build-deb
    scripts/test-packages target/dist/millpond

# Builds the handbook and runs its commands. Run as root.
handbook *chapters:
    scripts/test-handbook target/debug/millpond {{chapters}}

# Fuzzes one target; fuzz/README.md lists them.
fuzz target *arguments:
    cd fuzz && cargo +nightly fuzz run --features libfuzzer {{target}} {{arguments}}

# Compares with nginx. Run as root.
bench *arguments:
    bench/http.sh {{arguments}}

# Measures the thesis's tables. Run as root, after a release build.
bench-thesis *arguments:
    bench/thesis.py {{arguments}}

# Measures single functions of one crate (store, rtp or http), such as `just bench-crate store --bench policies`.
bench-crate name *arguments:
    cargo bench -p millpond-{{name}} {{arguments}}

# Repeats the measurements of the AMPS paper. Run as root, after a release build; --quick takes about a minute.
bench-amps *arguments:
    cargo build --profile profiling -p millpond
    bench/amps.py {{arguments}}
