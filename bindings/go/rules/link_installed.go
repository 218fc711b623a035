//go:build tollbar_installed && !tollbar_purego

package rules

// The library that `make install` has installed, found by pkg-config.

// #cgo pkg-config: tollbar-rules
import "C"
