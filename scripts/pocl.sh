# Brings the distribution's own PoCL without root: pocl.sh FOLDER downloads its packages and what they need of what
# the system lacks, and unpacks them under FOLDER. Nothing outside FOLDER changes.
#
#   FOLDER/root      the packages, unpacked
#   FOLDER/lib       links to their libraries, for LD_LIBRARY_PATH
#   FOLDER/vendors   for OCL_ICD_VENDORS: PoCL's .icd, and links to those the system has
#   FOLDER/env.sh    sets both, for programs other than tunesmith: . FOLDER/env.sh
#
# Exits with 1 where this system cannot, with 3 where nothing could be downloaded.
# POSIX sh, coreutils and the package manager's own programs; no grep, sed, awk or find.
set -eu
case $0 in */*) . "${0%/*}/packages.sh" ;; *) . ./packages.sh ;; esac

if [ $# -ne 1 ]; then
    say "pocl: one folder to unpack into is wanted, $# are given: sh scripts/pocl.sh .venv/pocl"
    exit 1
fi
mkdir -p "$(dirname "$1")"
folder=$(cd "$(dirname "$1")" && pwd -P)/$(basename "$1")
work=$folder.part # becomes $folder when it is whole

fail() {
    code=$1
    shift
    say "pocl: $*"
    if [ -n "$manager" ]; then say "  Or install it for the whole system: $(install_command "$pocl_package")"; fi
    exit "$code"
}

needs() {
    for program do
        if ! has "$program"; then
            fail 1 "unpacking $manager's packages needs $program, which is not on PATH; add it, then run make again"
        fi
    done
}

megabytes() { printf '%s' "$((($1 + 999999) / 1000000))"; }

# ---- apt-get: Debian, Ubuntu and what descends from them ----

# With lists, caches and locks of our own, which needs no root; without the hooks that clean the system's folders.
write_apt_settings() {
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/packages"
    cat >"$work/apt/settings" <<END
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "2";
Dir::State "$work/apt";
Dir::State::lists "$work/apt/lists";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "$work/apt/cache";
Dir::Log "$work/apt";
END
}

# What dpkg has installed for this architecture, between spaces.
find_installed() {
    architecture=$(dpkg --print-architecture)
    # shellcheck disable=SC2016 # dpkg-query expands these
    installed=" $(dpkg-query -W -f '${Package} ${Architecture} ${db:Status-Status}\n' |
        while read -r name its_architecture status; do
            case $status-$its_architecture in
                installed-all | "installed-$architecture") printf '%s ' "$name" ;;
            esac
        done)"
}

is_in() { case $2 in *" $1 "*) return 0 ;; *) return 1 ;; esac }

# Follows dependencies through libraries and data alone: PoCL has Clang as a library and does not run the program
# its package asks for. Of alternatives the first is taken, unless another is there already.
find_apt_packages() {
    wanted=" $pocl_package " front=$pocl_package
    while [ -n "$front" ]; do
        choice= settled= next=
        # shellcheck disable=SC2086 # several names
        depends=$(apt-cache -c "$work/apt/settings" depends --no-recommends --no-suggests --no-conflicts \
            --no-breaks --no-replaces --no-enhances $front) ||
            fail 1 "apt-cache could not tell what $front needs; its own words are above. Mend that, then run make again."
        while read -r kind name; do
            case $kind in *Depends:) ;; *) continue ;; esac
            if is_in "$name" "$installed$wanted"; then settled=yes; fi
            case $name in
                '<'* | *-dev) ;;
                lib* | pocl*) choice=${choice:-$name} ;;
            esac
            case $kind in '|'*) continue ;; esac # the next line is an alternative to this one
            if [ -z "$settled" ] && [ -n "$choice" ]; then next="$next $choice" wanted="$wanted$choice "; fi
            choice= settled=
        done <<END
$depends
END
        front=$next
    done
}

bring_by_apt() {
    needs apt-cache dpkg dpkg-deb dpkg-query tar
    write_apt_settings
    say "pocl: reading the package lists (about 10 MB), in a folder of our own …"
    # One repository that does not answer is no reason to stop: what counts is whether the package is known.
    apt-get -c "$work/apt/settings" -qq update >"$work/apt/log" 2>&1 || true
    if [ -z "$(ask apt-cache -c "$work/apt/settings" show "$pocl_package")" ]; then
        cat "$work/apt/log" >&2
        fail 3 "no package list that could be read has $pocl_package; apt-get's own words, if any, are above." \
            "Check the network and the sources in /etc/apt, then run make again."
    fi
    find_installed
    find_apt_packages
    total=0 count=0
    # shellcheck disable=SC2086
    uris=$(apt-get -c "$work/apt/settings" -qq download --print-uris $wanted) ||
        fail 1 "apt-get has no source for one of$wanted; its own words are above. Check /etc/apt, then run make again."
    while read -r uri file size rest; do total=$((total + size)) count=$((count + 1)); done <<END
$uris
END
    say "pocl: downloading $count packages, $(megabytes "$total") MB:$wanted…"
    # shellcheck disable=SC2086
    if ! (cd "$work/packages" && apt-get -c "$work/apt/settings" -qq download $wanted); then
        fail 3 "apt-get could not download$wanted; its own words are above. Check the network, then run make again."
    fi
    for file in "$work"/packages/*.deb; do
        if ! dpkg-deb -x "$file" "$work/root"; then
            fail 1 "dpkg-deb could not unpack ${file##*/}; its own words are above. Is the disk full? Then run make again."
        fi
    done
}

# ---- dnf: Fedora and what descends from it. Not seen. ----

bring_by_dnf() {
    needs rpm2cpio cpio
    mkdir -p "$work/packages" "$work/root"
    say "pocl: downloading $pocl_package and what it needs of what is not installed …"
    if ! dnf -q -y --setopt=cachedir="$work/dnf" --setopt=install_weak_deps=False download --resolve \
        --destdir "$work/packages" "$pocl_package" >&2; then
        fail 3 "dnf could not download $pocl_package; its own words are above. It needs the network, the command" \
            "'dnf download' (dnf-plugins-core) and, on RHEL, EPEL. Then run make again."
    fi
    for file in "$work"/packages/*.rpm; do
        if ! rpm2cpio "$file" | (cd "$work/root" && cpio -idm --quiet); then
            fail 1 "rpm2cpio and cpio could not unpack ${file##*/}; their own words are above. Is the disk full?" \
                "Then run make again."
        fi
    done
}

# ---- what is unpacked is made known ----

link_libraries() {
    mkdir "$work/lib"
    (
        cd "$work/lib"
        for library in ../root/lib*/*.so* ../root/lib/*/*.so* ../root/usr/lib*/*.so* ../root/usr/lib/*/*.so* \
            ../root/usr/lib*/llvm*/lib*/*.so*; do
            if [ -f "$library" ] && [ ! -e "${library##*/}" ]; then ln -s "$library" .; fi
        done
    )
}

write_vendors() {
    library=
    for found in "$work"/root/usr/lib*/libpocl.so.* "$work"/root/usr/lib/*/libpocl.so.*; do
        if [ -f "$found" ]; then library=$folder${found#"$work"}; fi
    done
    if [ -z "$library" ]; then
        fail 1 "the packages of $manager hold no library libpocl.so.*: this release names it in a way we do not know"
    fi
    mkdir "$work/vendors"
    for icd in /etc/OpenCL/vendors/*.icd; do # which the loader reads no longer once it is given this folder
        case $icd in *pocl* | *'*'*) ;; *) ln -s "$icd" "$work/vendors/" ;; esac
    done
    printf '%s\n' "$library" >"$work/vendors/pocl.icd"
    cat >"$work/env.sh" <<END
# Shows this PoCL to other programs than tunesmith. In a shell: . "$folder/env.sh"
export OCL_ICD_VENDORS="$folder/vendors"
export LD_LIBRARY_PATH="$folder/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
END
}

find_manager
if [ "$pocl_by" != unpack ]; then
    fail 1 "PoCL is unpacked from the packages of apt-get or dnf; this system has ${manager:-no package manager we know}."
fi
if ! has ld; then
    say "pocl: PoCL links every kernel with ld, which is not on PATH: $(install_command "$linker_package")"
    exit 1
fi
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
rm -rf "$work"
mkdir "$work"
case $manager in apt-get) bring_by_apt ;; *) bring_by_dnf ;; esac
link_libraries
write_vendors
rm -rf "$work/apt" "$work/dnf" "$work/packages" "$folder"
mv "$work" "$folder"
say "pocl: unpacked in $folder"
