#!/usr/bin/env bash
# Fuzzes: `tests/fuzz/run.sh [SECONDS] [TARGET...]`, all targets for 60 seconds each if nothing is said. Needs the nightly
# toolchain and cargo-fuzz. What it finds first is kept in corpus/, what fails in artifacts/ and in a failing exit.
#
# Without AddressSanitizer, which would cost most of the speed: below the driver, unsafe code is denied.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

seconds=${1:-60}
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
    echo "the first argument must be the seconds for each target, not $seconds" >&2
    exit 2
fi
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    targets=(bits schema netcode fresh connected packets calls slices acks virtual_connection words atomic ghosts inputs requests
        mesh hosting lockstep rollback rendezvous saved rooms reconnect)
fi

cargo +nightly fuzz build --fuzz-dir . --sanitizer none
failed=0
printf '%-20s %12s %8s  %s\n' target executions seconds result
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" "artifacts/$target"
    log=$(mktemp)
    result=ok
    target/x86_64-unknown-linux-gnu/release/"$target" -max_total_time="$seconds" -max_len=2048 -timeout=10 \
        -rss_limit_mb=512 -print_final_stats=1 -artifact_prefix="artifacts/$target/" \
        "corpus/$target" "seeds/$target" >"$log" 2>&1 || { result=FAILED; failed=1; }
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
    printf '%-20s %12s %8s  %s\n' "$target" "${executions:-?}" "$seconds" "$result"
    [ "$result" = ok ] || tail -25 "$log"
    rm -f "$log"
done
exit $failed
