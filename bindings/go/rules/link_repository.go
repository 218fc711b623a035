//go:build !tollbar_installed && !tollbar_purego

package rules

// The library of the repository that this package is in, as `make rules` builds it.

// #cgo CFLAGS: -I${SRCDIR}/../../../include
// #cgo LDFLAGS: -L${SRCDIR}/../../../build -ltollbar-rules -Wl,-rpath,${SRCDIR}/../../../build
import "C"
