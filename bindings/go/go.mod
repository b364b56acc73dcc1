module weir.example/weir

go 1.19
