#!/bin/sh
# Whether every C, C++ and CUDA file is as clang-format ($1) would have it.
set -e
files=$(find compiler dialects runtime templates tests tools -name '*.c' -o -name '*.cpp' -o -name '*.cu' -o -name '*.h')
test -n "$files"
exec "$1" --dry-run -Werror $files
