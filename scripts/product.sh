#!/bin/sh
# Measures the benefit of `anabranch join`: prints the tables of docs/product.md. Needs root; takes more than an hour.
#
#   scripts/product.sh              all measurements
#   scripts/product.sh first_octet  the measurements whose names contain this text
#   PRODUCT_ROUNDS=5 scripts/product.sh
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
exec nice -n 10 cargo test -q -p interop --test integration "product::${1:-}" -- --ignored --nocapture --test-threads 1
