#!/usr/bin/env bash
# Tests the plug-ins of vLLM and SGLang against the packages themselves, on the emulator: registration, choice, and the operator with
# the arguments that the framework passes. Each package lies in an environment of its own, build/vllm and build/sglang, without
# the torch and the GPU libraries that it pins (of which there are 20 GB): beside the torch of `tools/setup.sh --torch`, with
# what its classes need to be imported. No part of ctest. Needs the preset `release`, built, and its tests python.*, run.
#
#   tests/python/plugins.sh [vllm|sglang]...    both, if none is named
set -euo pipefail
cd "$(dirname "$0")/../.."

both=(aiohttp apache-tvm-ffi dill fastapi gguf msgspec openai opentelemetry-api partial-json-parser pillow psutil pybase64
      pyzmq requests)
vllm=(vllm==0.33.0 blake3 cachetools cbor2 cloudpickle compressed-tensors==0.17.0 depyf==0.20.0 diskcache lark==1.2.2 llguidance
      ninja oss-harmony==0.0.11 prometheus-client py-cpuinfo python-json-logger setproctitle tiktoken uvloop watchfiles
      xgrammar==0.2.8)
sglang=(sglang==0.5.23 compressed-tensors==0.20.1 ipython orjson sentencepiece torchvision==0.25.0 uvicorn)

fail() {
  echo "plugins: error: $1" >&2
  exit 3
}

install() { # the package itself, and torchvision, without what they pin
  local package=$1 packages without=() with=()
  [[ ! -e build/$package/installed ]] || return 0
  local -n packages=$package
  for name in "${packages[@]}"; do
    case $name in
      "$package"==* | torchvision==*) without+=("$name") ;;
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

[[ $# -gt 0 ]] || set -- vllm sglang
for package in "$@"; do
  [[ $package == vllm || $package == sglang ]] || { echo "plugins: error: expected vllm or sglang, got $package" >&2; exit 2; }
done
[[ -d build/torch ]] || fail "expected build/torch, which tools/setup.sh --torch makes, got none"
tests=$PWD/build/release/tests/python
[[ -e $tests/site/gdnc && -e $tests/ptx.gdnb ]] || fail "expected the package in $tests, which ctest -L python installs, got none"
for package in "$@"; do
  install "$package"
  (cd tests/python && GDN_DRIVER=emu GDN_BUNDLE=$tests/ptx.gdnb LD_LIBRARY_PATH=$tests/../../lib OMP_NUM_THREADS=1 \
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$tests/site "../../build/$package/bin/python" -m unittest "test_${package}_plugin")
done
