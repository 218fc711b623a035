module github.com/tollbar/tollbar/bindings/go/tollpurego

go 1.24

require github.com/tollbar/tollbar/bindings/go v0.0.0

require github.com/ebitengine/purego v0.10.1

replace github.com/tollbar/tollbar/bindings/go => ../
