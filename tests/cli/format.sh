#!/bin/sh
# Whether every C and C++ file is as clang-format ($1) would have it.
set -e
files=$(find compiler dialects runtime tests tools -name '*.c' -o -name '*.cpp' -o -name '*.h')
test -n "$files"
exec "$1" --dry-run -Werror $files
