module together

go 1.24

require tollbar v0.0.0

replace tollbar => ../../../bindings/go
