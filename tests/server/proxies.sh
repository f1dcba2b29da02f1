#!/bin/sh
# Make sure the tests of proxies have nginx and Caddy: installed ones, or packages of Debian or Ubuntu, which are unpacked
# and not installed. Where neither can be had the tests are skipped.
set -eu
target=$(realpath -m "$1")
mkdir -p "$target/lists/partial"
# Lists of its own, for a machine that has none and a user who may not write them.
own="-o Dir::State::Lists=$target/lists -o Dir::Cache=$target -o APT::Sandbox::User="
for name in nginx caddy; do
    if command -v "$name" >/dev/null || [ -x "/usr/sbin/$name" ]; then continue; fi
    cd "$target"
    if ! { apt-get download -qq "$name" || { apt-get $own update -qq && apt-get $own download -qq "$name"; }; } 2>/dev/null; then
        echo "$name cannot be had here: its tests are skipped"
        continue
    fi
    dpkg-deb -x "$name"_*.deb "$target"
    rm "$name"_*.deb
done
rm -rf "$target/lists"
