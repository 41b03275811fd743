#!/usr/bin/env bash
# The debug build as a task of scripts/test: the engine's tests, the fuzz targets and the typed models, over one build of the engine.
source "$(dirname "$0")/common.sh"
source scripts/lib/build.sh
build_debug
