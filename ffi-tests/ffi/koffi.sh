# shellcheck shell=sh
# To be sourced with $build set: koffi for Node, in $modules/node_modules once `fetched` has
# returned 0.

# A fixed version, so that a test's result does not change from day to day.
koffi=3.3.4
modules=$build/ffi/modules-$koffi
fetched() { [ -d "$modules/node_modules/koffi" ] || npm install --silent --no-save --no-package-lock --prefix "$modules" "koffi@$koffi"; }
