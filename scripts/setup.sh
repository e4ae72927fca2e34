# Makes .venv and installs tunesmith into it, editable, with the extras named: setup.sh EXTRAS (dev,opencl,cuda,models,watch,mcp,exports)
# With a second word, `device`, it ends with an error where no OpenCL device can be had.
#
# Does again only what must be done again: .venv is remade when it is broken or was made for another folder
# or another PYTHON, and the install is repeated when pyproject.toml or requirements-dev.txt has changed. PoCL,
# where no wheel of it serves and no OpenCL platform is there, is unpacked into .venv/pocl: see pocl.sh.
# POSIX sh and coreutils only.
set -eu
cd "$(dirname "$0")/.."
wanted=$1 needed=${2:-}
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
if [ -z "$cuda" ]; then without cuda; without exports; without kernel-tuner; fi

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

# uv does in seconds what takes pip a minute, but does not read pip's settings: pip itself installs where it is
# told of another index, and where uv cannot.
install() {
    case $(.venv/bin/python -m pip config list) in
        *.index-url=* | *.no-index=*) ;;
        *)
            if $pip --constraint requirements-dev.txt uv &&
                .venv/bin/uv pip install --quiet --python .venv/bin/python "$@"; then
                return
            fi
            say "setup: uv could not install it; trying pip, which takes longer"
            ;;
    esac
    $pip "$@"
}
pip='.venv/bin/python -m pip install -qq --disable-pip-version-check'

if ! is_installed; then
    say "installing tunesmith${wanted:+[$wanted]} into .venv (a minute or two the first time) …"
    rm -f "$stamp"
    if ! install --constraint requirements-dev.txt --editable ".${wanted:+[$wanted]}"; then
        say "setup: pip could not install tunesmith; its message is above. Run make again once that is mended."
        exit 1
    fi
    printf '%s\n' "$inputs" "$wanted" >"$stamp"
fi

# Workers may write nowhere in this folder: what they import is compiled for them.
.venv/bin/python -m compileall -q src || say "setup: src cannot be compiled here; every start takes longer"

# ---- an OpenCL device ----

# Asked in a process of its own: a broken driver may take it along.
lists_devices='
import sys, pyopencl
sys.exit(not any(platform.get_devices() for platform in pyopencl.get_platforms()))'

sees_platform() { ask .venv/bin/python -c "$lists_devices"; }

# The last words of the library itself: the loader keeps silent about one that it cannot load.
why_not() {
    .venv/bin/python -c "
import ctypes
ctypes.CDLL(open('.venv/pocl/vendors/pocl.icd').read().strip())
$lists_devices" 2>&1 | tail -n 1
}

sees_unpacked() { [ -f .venv/pocl/vendors/pocl.icd ] && (. ./.venv/pocl/env.sh && sees_platform); }

unpack_pocl() {
    if sees_unpacked; then return; fi
    say "setup: $1: bringing the distribution's own PoCL into .venv/pocl; nothing outside this folder changes"
    sh scripts/pocl.sh .venv/pocl || return 1
    if sees_unpacked; then return; fi
    say "setup: the PoCL unpacked in .venv/pocl does not start: $(. ./.venv/pocl/env.sh && why_not)"
    say "  Install it for the whole system: $(install_command "$pocl_package")"
    rm -rf .venv/pocl
    return 1
}

# With the wheel's PoCL beside it, nobody could say which of the two a kernel ran on.
remove_wheel() {
    if ask .venv/bin/python -c 'import pocl_binary_distribution'; then
        .venv/bin/python -m pip uninstall -qq --yes pocl-binary-distribution
    fi
}

bring_device() {
    if [ -z "$opencl" ]; then
        say "setup: PoCL and pyopencl are not set up with musl, so that there is no OpenCL device; see docs/setup.md"
    elif [ "${TUNESMITH_POCL:-}" = unpack ] || [ -d .venv/pocl ]; then
        remove_wheel
        if unpack_pocl "PoCL is to be unpacked here"; then return; fi
        needed=device
    elif [ "$pocl" = wheel ] || sees_platform; then
        return
    elif [ "$pocl" = unpack ]; then
        if unpack_pocl "no OpenCL platform is here, and PoCL has no wheel for $system $machine"; then return; fi
    else
        say "setup: no OpenCL platform is here, and PoCL has no wheel for $system $machine. What adds one:"
        if [ -n "$manager" ]; then say "  $(install_command "$pocl_package")"; else say "  https://portablecl.org"; fi
    fi
    if [ "$needed" = device ]; then exit 1; fi
    say "setup: going on without an OpenCL device"
}

case ,$1, in *,opencl,*) bring_device ;; esac
