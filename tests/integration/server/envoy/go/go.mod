module weir/tests/envoy

go 1.25.0

require (
    github.com/envoyproxy/go-control-plane v0.14.0
    github.com/envoyproxy/go-control-plane/envoy v1.37.0
    github.com/envoyproxy/go-control-plane/ratelimit v0.1.1-0.20260629194254-5581fade6089
    google.golang.org/grpc v1.81.1
    google.golang.org/protobuf v1.36.11
)

require (
    cel.dev/expr v0.25.1 // indirect
    github.com/cncf/xds/go v0.0.0-20260202195803-dba9d589def2 // indirect
    github.com/envoyproxy/protoc-gen-validate v1.3.3 // indirect
    github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect
    golang.org/x/net v0.51.0 // indirect
    golang.org/x/sys v0.42.0 // indirect
    golang.org/x/text v0.34.0 // indirect
    google.golang.org/genproto/googleapis/api v0.0.0-20260226221140-a57be14db171 // indirect
    google.golang.org/genproto/googleapis/rpc v0.0.0-20260226221140-a57be14db171 // indirect
)
