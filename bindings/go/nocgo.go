//go:build !cgo

package tollbar

// This package calls a C library, so its other files are built only with cgo, which Go turns off where it finds no C compiler.
// The packages cell and rate do without.
var _ = tollbar_needs_cgo__install_a_C_compiler_or_set_CGO_ENABLED_to_1
