module github.com/tollbar/tollbar/bindings/go/rate/differential

go 1.24

require (
	github.com/tollbar/tollbar/bindings/go v0.0.0
	golang.org/x/time v0.12.0
)

replace github.com/tollbar/tollbar/bindings/go => ../..
