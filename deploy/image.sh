#!/bin/sh
# The steps of the image (Containerfile), each of them for an empty Debian, as root:
#
#   image.sh tools            what is needed to build
#   image.sh install SOURCE   Shoal and its dependencies from the sources, into PREFIX
#   image.sh kernels          compile the kernels, for x86-64-v3 and for any processor, into KERNELS
#   image.sh base             what is needed to run, and the user
#
# PREFIX, KERNELS, STATE and ALGORITHMS (names, all by default) can be set. So can what pip reads,
# such as PIP_INDEX_URL.
set -eu

PREFIX=${PREFIX:-/opt/shoal}
KERNELS=${KERNELS:-/opt/shoal-kernels}
STATE=${STATE:-/var/lib/shoal}
ALGORITHMS=${ALGORITHMS:-}
# Files that others may read and nobody else may write, whatever the engine's default is.
umask 022

packages() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$@"
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb \
        /var/log/apt /var/log/dpkg.log
}

case ${1:-} in
tools)
    packages python3-venv ca-certificates
    ;;
install)
    source=${2:?"install needs the folder of the sources"}
    python3 -m venv "$PREFIX"
    "$PREFIX/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check \
        "${source}[live]"
    # Tests, headers and the installer itself are not needed to run.
    "$PREFIX/bin/python" -m pip uninstall --quiet --yes --disable-pip-version-check setuptools pip
    packages=$("$PREFIX/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    rm -rf "$packages/pyarrow/include" "$packages/pyarrow/src" "$packages/numpy/_core/include"
    rm -f "$packages"/pyarrow/*flight* "$packages"/pyarrow/*s3*
    find "$packages" -type d -name tests -prune -exec rm -rf {} +
    find "$packages" -type f \( -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' \) -delete
    ;;
kernels)
    case $(uname -m) in
    x86_64) levels="x86-64-v3 generic" ;;
    *) levels="generic" ;;
    esac
    for level in $levels; do
        # shellcheck disable=SC2086 # several names are several words
        "$PREFIX/bin/shoal" warm $ALGORITHMS --cpu "$level" --into "$KERNELS"
    done
    ;;
base)
    packages python3 ca-certificates
    groupadd --system --gid 10001 shoal
    useradd --system --uid 10001 --gid shoal --no-create-home --home-dir "$STATE" \
        --shell /usr/sbin/nologin shoal
    install -d -o shoal -g shoal -m 0700 "$STATE"
    ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
