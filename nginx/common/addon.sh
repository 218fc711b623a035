# shellcheck shell=sh
# The common part of all modules' `config` files, which source it in nginx's configure.
#
# TOLLBAR_BUILD is the directory with libtollbar.a and libtollbar-redis.a of `make lib`. The default
# is build/ of this project.

# The path is the same text for every module, because nginx's configure builds a source of two
# modules once only if both name it alike.
tollbar_root=$(cd "$ngx_addon_dir/../.." && pwd)
tollbar_common=$tollbar_root/nginx/common
tollbar_archive=${TOLLBAR_BUILD:-$tollbar_root/build}/libtollbar.a

# nginx searches these directories for every header, before the system's. So the headers have long
# names.
tollbar_incs="$tollbar_root/include $tollbar_common"

# The paths of files in nginx/common.
tollbar_files() { for tollbar_file in "$@"; do printf ' %s/ngx_%s' "$tollbar_common" "$tollbar_file"; done; }

# For all modules.
tollbar_srcs=$(tollbar_files tollbar_zone.c tollbar_file.c tollbar_conf.c tollbar_rate.c tollbar_several.c tollbar_variables.c)
tollbar_deps="$tollbar_root/include/tollbar.h $tollbar_archive $(tollbar_files tollbar_zone.h tollbar_file.h tollbar_conf.h tollbar_several.h tollbar_variables.h)"
tollbar_libs="$tollbar_archive -lpthread"

# For modules with `sync`. It comes before the other libraries.
tollbar_redis_archive=${tollbar_archive%.a}-redis.a
tollbar_redis_deps="$tollbar_root/include/tollbar_redis.h $tollbar_redis_archive"

# For modules whose zones all have a rate.
tollbar_rate_srcs=$(tollbar_files tollbar_rate_limit.c tollbar_rate_conf.c)
tollbar_rate_deps=$(tollbar_files tollbar_rate_limit.h)

# For modules that count requests or connections at one time.
tollbar_conn_srcs=$(tollbar_files tollbar_conn_zone.c tollbar_conn_limit.c tollbar_adaptive.c)
tollbar_conn_deps=$(tollbar_files tollbar_conn_zone.h tollbar_conn_limit.h tollbar_adaptive.h)

# For http modules only.
tollbar_http_srcs=$(tollbar_files http_tollbar_request.c)
tollbar_http_deps=$(tollbar_files http_tollbar_request.h)

# nginx loads all modules into one symbol namespace. A module exports only the symbols that nginx
# looks up, or two modules of different versions would call each other's functions.
if [ "$ngx_module_link" = DYNAMIC ]; then
    tollbar_libs="$tollbar_libs -Wl,--exclude-libs,ALL -Wl,--version-script=$tollbar_common/exports.map"
fi
