module tollbar/rate/differential

go 1.24

require (
	golang.org/x/time v0.12.0
	tollbar v0.0.0
)

replace tollbar => ../..
