module tollbar

go 1.24
