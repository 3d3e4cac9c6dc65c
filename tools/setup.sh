#!/usr/bin/env bash
# Prepares a Debian 12 machine, as root: installs the packages that are missing and, where there is no CUDA toolkit with
# ptxas 12.8 or newer and NVRTC, takes ptxas and NVRTC from their wheels into .venv. What is there already is left alone.
#
#   tools/setup.sh --torch               also makes build/torch, in which the Python package is tested, with transformers and
#                                        two versions of flash-linear-attention beside it: 7 GB, since PyPI has torch for
#                                        x86-64 with CUDA alone
#   GDNC_IGNORE_CUDA=1 tools/setup.sh    as if no toolkit were installed
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "setup: error: expected --torch or no argument, got $1" >&2
  exit 2
}

fail() {
  echo "setup: error: $1" >&2
  exit 3
}

packages=(
  g++ cmake ninja-build ccache git pkg-config ca-certificates python3 python3-dev python3-venv
  llvm-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools lld clang-format-22
  libfmt-dev libcli11-dev nlohmann-json3-dev libgtest-dev
)
cuda_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-nvrtc==13.0.88)

install_packages() {
  local missing=() package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  ((EUID == 0)) || fail "expected root to install ${missing[*]}, got user $EUID"
  apt-get update -q
  for package in "${missing[@]}"; do
    [[ -n $(apt-cache madison "$package") ]] ||
      fail "expected a package $package, got none; LLVM 22 is in the suite bookworm-security, which apt's sources must name"
  done
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# Looks where gdnc looks: ptxas, and NVRTC beside it.
has_toolkit() {
  [[ ${GDNC_IGNORE_CUDA:-} != 1 ]] || return 1
  local ptxas version
  for ptxas in "${CUDA_HOME:-}/bin/ptxas" "$(command -v ptxas || true)" /usr/local/cuda/bin/ptxas; do
    [[ -x $ptxas ]] || continue
    version=$("$ptxas" --version | sed -n 's/.*, V\([0-9.]*\)$/\1/p')
    compgen -G "$(dirname "$ptxas")/../lib*/libnvrtc.so.1[23]" >/dev/null || continue
    if printf '12.8\n%s\n' "$version" | sort --version-sort --check=quiet; then
      echo "setup: found ptxas $version in $(dirname "$ptxas")"
      return 0
    fi
  done
  return 1
}

install_wheels() {
  local installed=(.venv/lib/python*/site-packages/nvidia/cu13/bin/ptxas)
  [[ ! -x ${installed[0]} ]] || return 0
  echo "setup: found no CUDA toolkit with ptxas 12.8 or newer; taking ${cuda_wheels[*]} into .venv"
  python3 -m venv .venv
  # Without dependencies: they are headers and libraries for nvcc, which is not used.
  .venv/bin/pip install --quiet --no-deps "${cuda_wheels[@]}"
}

install_torch() {
  [[ ! -d build/torch/fla-0.6.0 ]] || return 0 # the last to be installed
  python3 -m venv build/torch
  build/torch/bin/pip install --quiet torch==2.10.0 transformers==5.17.0 einops==0.8.2 mypy==2.4.1
  local version
  for version in 0.5.2 0.6.0; do # without dependencies, which are alike
    build/torch/bin/pip install --quiet --no-deps --target build/torch/fla-$version \
      flash-linear-attention==$version fla-core==$version
  done
}

[[ $# == 0 || $* == --torch ]] || usage "$*"
install_packages
has_toolkit || install_wheels
[[ $# == 0 ]] || install_torch
