#!/usr/bin/env bash
# Runs the Rust tests under what watches memory and threads: `tests/sanitize.sh [models] [threads] [memory] [miri]`, the first three if
# nothing is said, as Miri takes very long. Needs the nightly toolchain with rust-src, and for the last miri.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=x86_64-unknown-linux-gnu
parts=("$@")
if [ ${#parts[@]} -eq 0 ]; then
    parts=(models threads memory)
fi

# Each has a folder of its own, or they would evict each other's builds.
for part in "${parts[@]}"; do
    echo "== $part"
    export CARGO_TARGET_DIR="$PWD/target/sanitize/$part"
    case $part in
    models) # Each order of what a game and its driver's thread do, by loom.
        RUSTFLAGS="--cfg loom" cargo test --lib models:: -- --nocapture --test-threads 1
        ;;
    threads) # ThreadSanitizer, the standard library included, over all that has threads.
        export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1"
        run=(cargo +nightly test -Zbuild-std --target "$target")
        RUSTFLAGS=-Zsanitizer=thread "${run[@]}" --lib driver::
        RUSTFLAGS=-Zsanitizer=thread "${run[@]}" --test rust -- threaded:: proxy::
        ;;
    memory) # AddressSanitizer, leaks included, over all tests.
        RUSTFLAGS=-Zsanitizer=address cargo +nightly test --target "$target" --lib --test rust
        ;;
    miri) # The containers and the bit streams; what makes system calls it can't run.
        cargo +nightly miri test --lib -- store:: wire::
        ;;
    *)
        echo "no part is called $part: models, threads, memory, miri" >&2
        exit 2
        ;;
    esac
done
