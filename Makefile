proto: ## regenerate the Protocol Buffers code (needs protoc; the result is committed)
	go build -o .bin/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
	PATH="$(CURDIR)/.bin:$$PATH" protoc -I . --go_out=. --go_opt=paths=source_relative \
	  --go-vtproto_out=. --go-vtproto_opt=paths=source_relative,features=marshal+unmarshal+unmarshal_unsafe+size \
	  job/jobpb/command.proto
	PATH="$(CURDIR)/.bin:$$PATH" protoc -I . --go_out=. --go_opt=paths=source_relative \
	  --go-grpc_out=. --go-grpc_opt=paths=source_relative $(wildcard cluster/*/*.proto cluster/*/*/*.proto)
