module addresses

go 1.24

require github.com/tollbar/tollbar/bindings/go v0.0.0

replace github.com/tollbar/tollbar/bindings/go => ../../../bindings/go

require (
	github.com/ebitengine/purego v0.10.1 // indirect
	github.com/tollbar/tollbar/bindings/go/tollpurego v0.0.0
)

replace github.com/tollbar/tollbar/bindings/go/tollpurego => ../../../bindings/go/tollpurego
