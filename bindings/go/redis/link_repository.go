//go:build !tollbar_installed && !tollbar_purego

package redis

// The libraries of the repository that this package is in, as `make lib` builds them.

// #cgo CFLAGS: -I${SRCDIR}/../../../include
// #cgo LDFLAGS: ${SRCDIR}/../../../build/libtollbar-redis.a ${SRCDIR}/../../../build/libtollbar.a
import "C"
