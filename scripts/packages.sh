# What each package manager calls the things Tunesmith needs, and the one command that adds them. Sourced by
# preflight.sh and pocl.sh. Shell builtins only, so that it works on a machine with nothing on its PATH.

say() { printf '%s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }
ask() { "$@" </dev/null 2>/dev/null; }

# The table. `pocl by`: `unpack`, scripts/pocl.sh unpacks it under .venv without root; `install`, the command is
# printed. `seen`: whether `make demo` has been watched to work there; docs/setup.md says on which systems.
# A dash: nothing to install. apt-get's Python is looked for by version, because each release has one of its own.
packages_table() {
    row apt-get  seen      python3-venv  binutils  pocl-opencl-icd  unpack  'apt-get install -y'
    row dnf      not-seen  python3.12    binutils  pocl             unpack  'dnf install -y'
    row microdnf not-seen  python3.12    binutils  pocl             install 'microdnf install -y'
    row pacman   not-seen  python        binutils  pocl             install 'pacman -S --needed'
    row apk      not-seen  python3       binutils  pocl             install 'apk add'
    row zypper   not-seen  python312     binutils  pocl             install 'zypper install -y'
    row brew     not-seen  python@3.13   -         pocl             install 'brew install'
}

# Sets manager and its row: manager_seen, python_package, linker_package, pocl_package, pocl_by, adds.
find_manager() {
    manager= manager_seen= python_package= linker_package= pocl_package= pocl_by= adds=
    row() {
        if [ -n "$manager" ] || ! has "$1"; then return; fi
        manager=$1 manager_seen=$2 python_package=$3 linker_package=$4 pocl_package=$5 pocl_by=$6 adds=$7
    }
    packages_table
}

# On apt-get the newest that this release has, and none where its lists are there and name none.
find_python_package() {
    if [ "$manager" != apt-get ]; then return; fi
    for version in 3.13 3.12 3.11; do
        if has apt-cache && [ -n "$(ask apt-cache pkgnames "python$version-venv")" ]; then
            python_package=python$version-venv
            return
        fi
    done
    if apt_knows_packages; then python_package=; fi
}

apt_knows_packages() {
    for list in /var/lib/apt/lists/*Packages*; do
        if [ -e "$list" ]; then return 0; fi
    done
    return 1
}

# install_command PACKAGE…: the one command that adds these packages to the system.
install_command() {
    sudo='sudo '
    if [ "$manager" = brew ] || [ "$(id -u)" -eq 0 ]; then sudo=; fi
    if [ "$manager" = apt-get ] && ! apt_knows_packages; then printf '%s' "${sudo}apt-get update && "; fi
    printf '%s\n' "$sudo$adds $*"
}
