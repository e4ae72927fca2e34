# Checks what this machine must bring, and prints the one command that adds what is missing.
#
# Run by hand (`sh scripts/preflight.sh`) or sourced by setup.sh, for which it sets
#   python   an interpreter, 3.11 or newer, that can make a virtual environment; .venv's own if that is sound
#   opencl   "opencl" where that extra can be installed, else empty
#   cuda     "cuda" likewise
#   pocl     how PoCL, the OpenCL device on the CPU, gets here: wheel, unpack (scripts/pocl.sh), install (by hand)
# TUNESMITH_POCL=unpack chooses `unpack` where the wheel would serve, too.
# Leans on POSIX sh and coreutils alone: no grep, sed, awk or find.

case $0 in */*) . "${0%/*}/packages.sh" ;; *) . ./packages.sh ;; esac

pocl=install
opencl=opencl
cuda=cuda
missing=
packages=
advice=

lacks() { missing="$missing
  - $1"; }

version_of() { ask "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }
is_recent() { ask "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; }
makes_venvs() { ask "$1" -c 'import ensurepip, venv'; }

# Sound: it starts, has pip, and was made for this folder. After a move or a copy its scripts would point
# at the old place; after an upgrade of the system's Python its packages would be out of sight.
venv_is_sound() {
    [ -x .venv/bin/python ] && is_recent .venv/bin/python && ask .venv/bin/python -c '
import os, pip, sys
made = [line.strip() for line in open(os.path.join(sys.prefix, "pyvenv.cfg")) if line.startswith("command")]
sys.exit(not all(line.endswith(os.path.realpath(sys.prefix)) for line in made))'
}

find_python() {
    python= without_venv= too_old=
    if venv_is_sound; then
        if [ -z "${PYTHON:-}" ] || [ "$(version_of "$PYTHON")" = "$(version_of .venv/bin/python)" ]; then
            python=.venv/bin/python
            return
        fi
    fi
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3.13 python3.12 python3.11 python3; fi
    for name do
        path=$(command -v "$name") || continue
        version=$(version_of "$path") || continue # a launcher with nothing behind it
        if ! is_recent "$path"; then
            too_old="$path is $version"
        elif ! makes_venvs "$path"; then
            without_venv=${without_venv:-$path}
        else
            python=$path
            return
        fi
    done
}

check_python() {
    find_python
    if [ -n "$python" ]; then return; fi
    if [ -n "$without_venv" ]; then
        lacks "the modules venv and ensurepip of $without_venv"
        if [ "$manager" = apt-get ]; then
            packages="$packages python$(version_of "$without_venv")-venv"
        else
            advice="Name a complete Python 3.11 or newer: make PYTHON=/path/to/python3"
        fi
        return
    fi
    if [ -n "${PYTHON:-}" ]; then
        lacks "Python 3.11 or newer (PYTHON=$PYTHON: ${too_old:-does not run})"
        advice="Name another interpreter with PYTHON=/path/to/python3, or leave PYTHON out."
        return
    fi
    lacks "Python 3.11 or newer (${too_old:-no python3 on PATH})"
    find_python_package
    if [ -n "$python_package" ]; then
        packages="$packages $python_package"
    else
        uv='"$HOME/.local/bin/uv"'
        advice="No package of this system has it. This command brings one for you alone, without root:
  curl -LsSf https://astral.sh/uv/install.sh | sh && $uv python install 3.12 && make demo PYTHON=\"\$($uv python find 3.12)\""
    fi
}

check_platform() {
    system=$(uname -s) machine=$(uname -m) libc=
    if [ "$system" = Linux ] && [ -n "$python" ]; then
        case $(ask "$python" -c 'import os; print(os.confstr("CS_GNU_LIBC_VERSION"))') in
            glibc*) libc=glibc ;;
            *) libc=musl opencl= cuda= ;; # where pyopencl, too, would have to be compiled
        esac
    fi
    # NVIDIA's wheels for CUDA; where there are none the tests that need them are skipped.
    case $system-$machine in Linux-x86_64 | Linux-aarch64) ;; *) cuda= ;; esac
    case $system-$machine-$libc in
        *-musl) ;;
        Linux-x86_64-*) pocl=wheel ;;
        Linux-*) pocl=${pocl_by:-install} ;;
    esac
}

check_choice() {
    case ${TUNESMITH_POCL:-} in
        '') return ;;
        unpack) if [ "$system-$pocl_by-$libc" = Linux-unpack-glibc ]; then pocl=unpack && return; fi ;;
        *)
            say "preflight: TUNESMITH_POCL may be 'unpack' or unset, and is '$TUNESMITH_POCL': unset TUNESMITH_POCL"
            exit 1 ;;
    esac
    if [ -z "$python" ]; then return; fi # which is told first
    say "preflight: TUNESMITH_POCL=unpack needs Linux with glibc and apt-get or dnf; this is" \
        "$system $machine${libc:+ ($libc)} with ${manager:-no package manager we know}: unset TUNESMITH_POCL"
    exit 1
}

# PoCL compiles a kernel with its own Clang and links it with the system's ld: without one it aborts.
check_linker() {
    if [ "$pocl" = install ] || has ld; then return; fi
    lacks "a linker, ld (PoCL, the OpenCL device on the CPU, links every kernel with it)"
    packages="$packages ${linker_package:-binutils}"
}

find_manager
check_python
check_platform
check_choice
check_linker

if [ -n "$missing" ]; then
    say "preflight: this machine lacks$missing"
    if [ -n "$packages" ] && [ -n "$manager" ]; then
        say "Install what is missing:"
        say "  $(install_command $packages)"
    elif [ -n "$packages" ]; then
        say "Install with this system's package manager:$packages"
    fi
    if [ -n "$advice" ]; then say "$advice"; fi
    exit 1
fi

say "preflight: Python $(version_of "$python") ($python)"
if [ "$pocl" = install ]; then
    say "preflight: PoCL, the OpenCL device on the CPU, has a wheel for Linux x86_64 (glibc) only; this is" \
        "$system $machine${libc:+ ($libc)}. 'make test' works and skips the OpenCL tests; 'make demo' needs another" \
        "OpenCL platform: a GPU driver's, or PoCL from your package manager."
    if [ -z "$opencl" ]; then say "preflight: PoCL's wheel does not run on musl, and the extra 'opencl' is left out of .venv."; fi
fi
