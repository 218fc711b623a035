# shellcheck shell=sh
# To be sourced with $build set: koffi for Node, in $modules/node_modules once `fetched` has
# returned 0, and the compiler of TypeScript, $typescript/node_modules/.bin/tsc, once
# `typescript_fetched` has.

# Fixed versions, so that a test's result does not change from day to day.
koffi=3.3.4
modules=$build/ffi/modules-$koffi
fetched() { [ -d "$modules/node_modules/koffi" ] || npm install --silent --no-save --no-package-lock --prefix "$modules" "koffi@$koffi"; }
tsc=5.9.3
typescript=$build/ffi/typescript-$tsc
typescript_fetched() { [ -d "$typescript/node_modules/typescript" ] || npm install --silent --no-save --no-package-lock --prefix "$typescript" "typescript@$tsc"; }
