module github.com/tollbar/tollbar/bindings/go/ratelimit/differential

go 1.24

require (
	github.com/benbjohnson/clock v1.3.0
	github.com/juju/ratelimit v1.0.2
	github.com/stretchr/testify v1.6.1
	github.com/tollbar/tollbar/bindings/go v0.0.0
	go.uber.org/atomic v1.7.0
	go.uber.org/ratelimit v0.3.1
	gopkg.in/check.v1 v1.0.0-20201130134442-10cb98267c6c
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/kr/pretty v0.2.1 // indirect
	github.com/kr/text v0.1.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.0-20200313102051-9f266ea9e77c // indirect
)

replace github.com/tollbar/tollbar/bindings/go => ../..
