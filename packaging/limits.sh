# shellcheck shell=sh disable=SC2034
# Sourced. The packaging tests fail if a crate for crates.io has more bytes than this. The reason
# for the number is in docs/internals/decisions/0065-size-of-the-crate.md.
crate_limit=458752
