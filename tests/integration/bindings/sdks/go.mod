module sdks

go 1.21

require github.com/google/go-github/v66 v66.0.0

require github.com/openai/openai-go v1.12.0

require weir.example/weir v0.0.0

replace weir.example/weir => ./weir
