module addresses

go 1.24

require github.com/tollbar/tollbar/bindings/go v0.0.0

replace github.com/tollbar/tollbar/bindings/go => ../../../bindings/go
