//go:build tollbar_installed && !tollbar_purego

package tollbar

// The library that `make install` has installed, found by pkg-config.

// #cgo pkg-config: tollbar
// #cgo CFLAGS: -DTOLLBAR_GO_INSTALLED
import "C"
