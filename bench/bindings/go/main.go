// SPDX-License-Identifier: Apache-2.0
// What a request pays for its limit in Go: weir's handler for net/http beside go-chi/httprate, which
// counts in memory, on requests and writers of httptest, without sockets.
//
//	cd bench/bindings/go
//	PKG_CONFIG_PATH=$PWD/../../../build/meson-uninstalled LD_LIBRARY_PATH=$PWD/../../../build/src/library \
//	    go run -mod=mod . [ROUNDS]
//
// Prints CPU time for each request, medians over rounds that take turns. `nothing` is what the requests
// cost without a limit, and is taken off.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"syscall"
	"time"

	"github.com/go-chi/httprate"
	"weir.example/weir"
)

const (
	requests = 20000
	plenty   = 1_000_000_000
)

type handler struct {
	name  string
	serve http.Handler
	times []float64
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func cpu() time.Duration {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func measure(serve http.Handler) float64 {
	before := cpu()
	for i := 0; i < requests; i++ {
		request := httptest.NewRequest("GET", "/hello", nil)
		request.RemoteAddr = "192.0.2.1:1234"
		serve.ServeHTTP(httptest.NewRecorder(), request)
	}
	return float64((cpu() - before).Nanoseconds()) / 1000 / requests
}

// A weir with this rate, and its state in a file if `state` says so.
func limited(folder, name, rate, state string, hello http.Handler) http.Handler {
	rules := filepath.Join(folder, name+".yaml")
	text := fmt.Sprintf("version: 1\non_store_error: open\nlimits:\n"+
		"  - { name: one, key: [client.ip], rate: %s, algorithm: fixed_window }\n", rate)
	check(os.WriteFile(rules, []byte(text), 0o600))
	limits, err := weir.Open(rules, &weir.Options{State: state})
	check(err)
	return limits.Handler(hello, nil)
}

func main() {
	rounds := 15
	if len(os.Args) > 1 {
		given, err := strconv.Atoi(os.Args[1])
		check(err)
		rounds = given
	}
	folder, err := os.MkdirTemp("", "weir-bench-")
	check(err)
	defer os.RemoveAll(folder)
	hello := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "hello") })
	many := fmt.Sprintf("%d/h", plenty)
	handlers := []*handler{
		{name: "nothing", serve: hello},
		{name: "httprate", serve: httprate.LimitByIP(plenty, time.Hour)(hello)},
		{name: "weir", serve: limited(folder, "weir", many, "", hello)},
		{name: "weir, state file", serve: limited(folder, "shared", many, filepath.Join(folder, "state"), hello)},
		{name: "httprate, denied", serve: httprate.LimitByIP(1, time.Hour)(hello)},
		{name: "weir, denied", serve: limited(folder, "denied", "1/h", "", hello)},
	}
	for round := -1; round < rounds; round++ {
		for _, each := range handlers {
			if took := measure(each.serve); round >= 0 { // the first one warms up
				each.times = append(each.times, took)
			}
		}
	}
	fmt.Printf("us of CPU for each request, %d rounds of %d; %s\n", rounds, requests, runtime.Version())
	var nothing float64
	for i, each := range handlers {
		sort.Float64s(each.times)
		median := each.times[len(each.times)/2]
		fmt.Printf("%-20s %6.2f\n", each.name, median-nothing)
		if i == 0 {
			nothing = median
		}
	}
}
