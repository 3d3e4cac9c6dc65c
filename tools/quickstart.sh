#!/usr/bin/env bash
# Builds the preset `release`, compiles a public model's kernels into a bundle and runs them on the GPU, or on the
# emulator where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

wheels=(.venv/lib/python*/site-packages/nvidia/cu13)
if [[ -d ${wheels[0]} ]]; then
  export CUDA_HOME=$PWD/${wheels[0]}
fi

cmake --preset release
cmake --build --preset release --parallel "$(nproc)"

gdnc=build/release/bin/gdnc
run=--run-emulator
if $gdnc doctor --json | grep -q '"gpu 0"'; then
  run=--run
fi
$gdnc build --model Qwen3-Next-80B-A3B --tp 8 --arch sm_90a -o build/release/qwen3-next.gdnb $run 4096
