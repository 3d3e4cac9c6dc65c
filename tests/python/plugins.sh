#!/usr/bin/env bash
# Tests the plug-in of vLLM against the package itself, on the emulator: registration, choice, and the operator with the
# arguments that vLLM passes. It lies in an environment of its own, build/vllm, without the torch and the GPU libraries that it
# pins (of which there are 20 GB): beside the torch of `tools/setup.sh --torch`, with what its classes need to be imported. No part of ctest. Needs the preset `release`, built, and its tests python.*, run.
#
#   tests/python/plugins.sh [vllm]
set -euo pipefail
cd "$(dirname "$0")/../.."

both=(aiohttp apache-tvm-ffi dill fastapi gguf msgspec openai opentelemetry-api partial-json-parser pillow psutil pybase64
      pyzmq requests)
vllm=(vllm==0.33.0 blake3 cachetools cbor2 cloudpickle compressed-tensors==0.17.0 depyf==0.20.0 diskcache lark==1.2.2 llguidance
      ninja oss-harmony==0.0.11 prometheus-client py-cpuinfo python-json-logger setproctitle tiktoken uvloop watchfiles
      xgrammar==0.2.8)

fail() {
  echo "plugins: error: $1" >&2
  exit 3
}

install() { # the package itself without what it pins
  local package=$1 packages without=() with=()
  [[ ! -e build/$package/installed ]] || return 0
  local -n packages=$package
  for name in "${packages[@]}"; do
    case $name in
      "$package"==*) without+=("$name") ;;
      *) with+=("$name") ;;
    esac
  done
  python3 -m venv "build/$package"
  for site in build/torch/lib/python*/site-packages; do
    realpath "$site" >"build/$package/${site#build/torch/}/torch.pth"
  done
  "build/$package/bin/pip" install --quiet "${both[@]}" "${with[@]}"
  "build/$package/bin/pip" install --quiet --no-deps "${without[@]}"
  touch "build/$package/installed"
}

[[ $# -gt 0 ]] || set -- vllm
for package in "$@"; do
  [[ $package == vllm ]] || { echo "plugins: error: expected vllm, got $package" >&2; exit 2; }
done
[[ -d build/torch ]] || fail "expected build/torch, which tools/setup.sh --torch makes, got none"
tests=$PWD/build/release/tests/python
[[ -e $tests/site/gdnc && -e $tests/ptx.gdnb ]] || fail "expected the package in $tests, which ctest -L python installs, got none"
for package in "$@"; do
  install "$package"
  (cd tests/python && GDN_DRIVER=emu GDN_BUNDLE=$tests/ptx.gdnb LD_LIBRARY_PATH=$tests/../../lib OMP_NUM_THREADS=1 \
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$tests/site "../../build/$package/bin/python" -m unittest "test_${package}_plugin")
done
