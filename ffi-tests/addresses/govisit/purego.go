package main

// With -tags tollbar_purego the program calls libtollbar without cgo.
import _ "github.com/tollbar/tollbar/bindings/go/tollpurego"
