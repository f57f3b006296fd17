#!/bin/sh
# Make a stand-in for the base image where no registry can be reached: a small Debian 12 from its
# packages, without documentation and languages, like debian:bookworm-slim. As root:
#
#   base.sh ENGINE [IMAGE]     such as: base.sh podman docker.io/library/debian:bookworm-slim
#
# It needs debootstrap. MIRROR is where the packages come from.
set -eu

engine=${1:?"base.sh ENGINE [IMAGE]: podman or docker"}
image=${2:-docker.io/library/debian:bookworm-slim}
MIRROR=${MIRROR:-http://deb.debian.org/debian}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/root
debootstrap --variant=minbase bookworm "$root" "$MIRROR" > "$folder/log" || {
    tail -n 5 "$folder/log" >&2
    exit 4
}
for each in doc info locale man lintian groff; do
    echo "path-exclude /usr/share/$each/*"
done > "$root/etc/dpkg/dpkg.cfg.d/slim"
echo "path-include /usr/share/doc/*/copyright" >> "$root/etc/dpkg/dpkg.cfg.d/slim"
find "$root/usr/share/doc" -type f ! -name copyright -delete
for each in info locale man lintian groff; do
    rm -rf "${root:?}/usr/share/$each"
done
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/log/*.log
tar -C "$root" -c . | "$engine" import - "$image"
