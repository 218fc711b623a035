module github.com/tollbar/tollbar/bindings/go/tollchi

go 1.24

require github.com/tollbar/tollbar/bindings/go v0.0.0

require github.com/go-chi/chi/v5 v5.2.3

replace github.com/tollbar/tollbar/bindings/go => ../
