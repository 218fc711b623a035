#!/bin/sh
# rpm.sh: the RPM packages, into build/packages/rpm, by rpmbuild from the source archive.
set -eu
cd "$(dirname "$0")/.."
. packaging/archive.sh
tools/setup.sh rpm
. tools/rust.sh
packaging/tarball.sh source >/dev/null
work=$PWD/build/packages-work/rpm
rm -rf "$work"
mkdir -p "$work" build/packages/rpm
# Rust may be here without being a package.
SOURCE_DATE_EPOCH=$(packaging/date.sh) rpmbuild -bb --nodeps --quiet --define "_topdir $work" --define "_sourcedir $PWD/build/packages" \
    --define "tollbar_version $version" --define "use_source_date_epoch_as_buildtime 1" --define "_buildhost tollbar" \
    --define "clamp_mtime_to_source_date_epoch 1" packaging/tollbar.spec >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2 && exit 1; }
find build/packages/rpm -name '*.rpm' -delete
find "$work/RPMS" -name '*.rpm' -exec mv {} build/packages/rpm \;
rm -rf "$work/BUILD" "$work/BUILDROOT"
ls build/packages/rpm/*.rpm
