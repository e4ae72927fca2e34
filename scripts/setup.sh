# Makes .venv and installs tunesmith into it, editable, with the extras named: setup.sh EXTRAS (dev,opencl,cuda,models)
#
# Does again only what must be done again: .venv is remade when it is broken or was made for another folder
# or another PYTHON, and the install is repeated when pyproject.toml or requirements-dev.txt has changed.
# POSIX sh and coreutils only.
set -eu
cd "$(dirname "$0")/.."
wanted=$1
stamp=.venv/.installed

. ./scripts/preflight.sh

# Without the extras that have no wheels on this machine.
without() {
    case ,$wanted, in *,"$1",*) ;; *) return 0 ;; esac
    kept= rest=$wanted,
    while [ -n "$rest" ]; do
        if [ "${rest%%,*}" != "$1" ]; then kept=$kept${kept:+,}${rest%%,*}; fi
        rest=${rest#*,}
    done
    wanted=$kept
}
if [ -z "$opencl" ]; then without opencl; fi
if [ -z "$cuda" ]; then without cuda; fi

if [ "$python" != .venv/bin/python ]; then
    if [ -e .venv ] || [ -h .venv ]; then
        say "removing .venv: it is broken, or was made for another folder or another Python"
        rm -rf .venv
    fi
    say "creating .venv …"
    "$python" -m venv .venv
fi

inputs=$(cat pyproject.toml requirements-dev.txt | cksum)

is_installed() {
    [ -f "$stamp" ] && [ -x .venv/bin/tunesmith ] || return 1
    { read -r installed_from && read -r installed; } <"$stamp" || return 1
    [ "$installed_from" = "$inputs" ] || return 1
    case ,$installed, in *,"$wanted",*) ;; *) [ -z "$wanted" ] ;; esac
}

if ! is_installed; then
    say "installing tunesmith${wanted:+[$wanted]} into .venv (a minute or two the first time) …"
    rm -f "$stamp"
    if ! .venv/bin/python -m pip install -qq --disable-pip-version-check \
        --constraint requirements-dev.txt --editable ".${wanted:+[$wanted]}"; then
        say "setup: pip could not install tunesmith; its message is above. Run make again once that is mended."
        exit 1
    fi
    printf '%s\n' "$inputs" "$wanted" >"$stamp"
fi
