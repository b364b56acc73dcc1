module frameworks

go 1.19

require github.com/go-chi/chi/v5 v5.0.12

require github.com/gorilla/handlers v1.5.2

require github.com/gorilla/mux v1.8.1

require weir.example/weir v0.0.0

replace weir.example/weir => ./weir
