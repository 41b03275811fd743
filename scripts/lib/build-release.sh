#!/usr/bin/env bash
# The release build as a task of scripts/test: the library and all programs in C.
source "$(dirname "$0")/common.sh"
source scripts/lib/build.sh
build_release
