module weir/bench

go 1.19

require (
    github.com/go-chi/httprate v0.14.1
    weir.example/weir v0.0.0
)

replace weir.example/weir => ../../../bindings/go
