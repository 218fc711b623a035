module github.com/tollbar/tollbar/bindings/go

go 1.24
