// SPDX-License-Identifier: Apache-2.0

// A server of Go with weir's handler: door RULES STATE. Prints its port.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"weir.example/weir"
)

func named(r *http.Request) map[string]string {
	given := map[string]string{}
	if text := r.Header.Get("X-Door-Named"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			log.Fatal(err)
		}
	}
	return given
}

func main() {
	limits, err := weir.Open(os.Args[1], &weir.Options{State: os.Args[2]})
	if err != nil {
		log.Fatal(err)
	}
	passed := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "passed") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() { log.Fatal(http.Serve(listener, limits.Handler(passed, &weir.Middleware{Attributes: named}))) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}
