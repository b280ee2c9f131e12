module tarry/integration

go 1.26.8

require (
	tarry v0.0.0
	tarry/chaos v0.0.0
	tarry/client v0.0.0
)

replace (
	tarry => ../
	tarry/chaos => ../chaos
	tarry/client => ../client
)

// As in the product's go.mod.
replace github.com/hashicorp/go-metrics v0.7.0 => github.com/hashicorp/go-metrics v0.6.1

require (
	github.com/beanstalkd/go-beanstalk v0.2.0
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.6
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20250313105119-ba97887b0a25 // indirect
	golang.org/x/sys v0.48.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
