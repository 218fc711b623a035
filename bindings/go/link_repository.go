//go:build !tollbar_installed && !tollbar_purego

package tollbar

// The library of the repository that this package is in, as `make lib` builds it.

// #cgo CFLAGS: -I${SRCDIR}/../../include
// #cgo LDFLAGS: ${SRCDIR}/../../build/libtollbar.a
import "C"
