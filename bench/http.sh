#!/usr/bin/env bash
# Compares millpond with Debian's nginx on this machine, in one run; see compare.py --help for the options.
# Needs nginx, wrk, ffmpeg and python3; run as root so that TCP congestion control can be set for the run.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$top/target}
case " $* " in
  *" --server "* | *" --stand-in "* | *" --help "* | *" -h "*) ;;
  *) (cd "$top" && cargo build --release -p millpond) ;;
esac
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$top/bench/compare.py" "$@"
