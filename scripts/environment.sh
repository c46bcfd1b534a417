# Sourced by run and test: makes .venv with exactly the pinned packages of one requirements file.
# Usage: prepare_environment run|test

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv="$root/.venv"

find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 || continue
    "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    echo "$candidate"
    return
  done
  echo "Python 3.11 or later is needed and was not found: install it, or set PYTHON to its path." >&2
  exit 3
}

prepare_environment() {
  local pins="$root/requirements/$1.txt" stamp="$venv/.installed-$1" wanted python
  wanted=$(cksum <"$pins")
  [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
  (
    ! command -v flock >/dev/null || flock 9 # two first starts at once: the second waits for the first
    [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && exit 0
    python=$(find_python) || exit 3
    echo "Installing the pinned packages into $venv (once; a minute or two) ..." >&2
    if [ ! -x "$venv/bin/python" ] && ! "$python" -m venv "$venv" >&2; then
      echo "Could not create $venv: on Debian and Ubuntu install the package python3-venv, then run this again." >&2
      rm -rf "$venv"
      exit 3
    fi
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --progress-bar off \
      --require-hashes -r "$pins" >&2; then
      echo "The installation failed: check the network or pip's settings, then run this again." >&2
      exit 3
    fi
    rm -f "$venv"/.installed-*
    echo "$wanted" >"$stamp"
  ) 9>"$root/.venv.lock" || exit $?
}
