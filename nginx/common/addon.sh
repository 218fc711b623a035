# shellcheck shell=sh
# What the `config` files of all modules have in common; sourced by them in nginx's configure.
#
# TOLLBAR_BUILD is where `make lib` has put libtollbar.a and libtollbar-redis.a; build/ of this project unless said.

# The same text for every module: nginx's configure builds a source that two of them have once, if it has one name.
tollbar_root=$(cd "$ngx_addon_dir/../.." && pwd)
tollbar_common=$tollbar_root/nginx/common
tollbar_archive=${TOLLBAR_BUILD:-$tollbar_root/build}/libtollbar.a

# nginx looks for the headers of all modules in all of these directories, before the system's: hence their long names.
tollbar_srcs="$tollbar_common/ngx_tollbar_zone.c $tollbar_common/ngx_tollbar_conf.c $tollbar_common/ngx_tollbar_rate.c $tollbar_common/ngx_tollbar_several.c"
tollbar_incs="$tollbar_root/include $tollbar_common"
tollbar_deps="$tollbar_root/include/tollbar.h $tollbar_common/ngx_tollbar_zone.h $tollbar_common/ngx_tollbar_conf.h $tollbar_common/ngx_tollbar_several.h $tollbar_archive"
tollbar_libs="$tollbar_archive -lpthread"

# For modules whose zones may be shared with other machines; before the other libraries.
tollbar_redis_archive=${tollbar_archive%.a}-redis.a
tollbar_redis_deps="$tollbar_root/include/tollbar_redis.h $tollbar_redis_archive"

# For modules that count what has a beginning and an end, beside or instead of those. They need nothing of the archive.
tollbar_conn_srcs=
for tollbar_part in conn conn_hash conn_process conn_zone conn_limit; do
    tollbar_conn_srcs="$tollbar_conn_srcs $tollbar_common/ngx_tollbar_$tollbar_part.c"
done
tollbar_conn_deps="$tollbar_common/ngx_tollbar_conn.h $tollbar_common/ngx_tollbar_conn_zone.h $tollbar_common/ngx_tollbar_conn_limit.h"

# What only HTTP modules have.
tollbar_http_srcs="$tollbar_common/ngx_http_tollbar_request.c"
tollbar_http_deps="$tollbar_common/ngx_http_tollbar_request.h"

# nginx loads modules into one space of names: only what it asks for may be seen, or two of them that were built from
# different versions would call each other's functions.
if [ "$ngx_module_link" = DYNAMIC ]; then
    tollbar_libs="$tollbar_libs -Wl,--exclude-libs,ALL -Wl,--version-script=$tollbar_common/exports.map"
fi
