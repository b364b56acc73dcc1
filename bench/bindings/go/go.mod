module weir/bench

go 1.19

require (
    github.com/go-chi/httprate v0.14.1
    weir.example/weir v0.0.0
)

require github.com/cespare/xxhash/v2 v2.3.0 // indirect

replace weir.example/weir => ../../../bindings/go
