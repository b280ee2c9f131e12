// The Go client, by itself: who uses it does not get what a node needs.
module tarry/client

// The oldest release of Go that still gets fixes.
go 1.26.0

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.6 // indirect
