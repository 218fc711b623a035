# shellcheck shell=sh
# Sourced by what makes archives. Two archives of the same files have the same bytes.

# DIRECTORY FILE: FILE.tar.gz of the directory, whose last component is the name that all paths in
# it begin with.
archive() {
    tar --sort=name --mtime="@$(packaging/date.sh)" --owner=0 --group=0 --numeric-owner --format=gnu --mode=u=rwX,go=rX \
        -cf - -C "${1%/*}" "${1##*/}" | gzip -9n >"$2"
}
# The version in Cargo.toml.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
