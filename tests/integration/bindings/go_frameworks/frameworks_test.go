// SPDX-License-Identifier: Apache-2.0

// The handler behind the published routers: chi and gorilla/mux.
package frameworks

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/handlers"
	"github.com/gorilla/mux"
	"weir.example/weir"
)

const rules = `version: 1
server: { trusted_proxies: [127.0.0.0/8] }
limits:
  - { name: two, match: { path: /two }, key: [client.ip], rate: 2/h, algorithm: sliding_log }
  - { name: failed, match: { path: /failed }, key: [], rate: 9/h, refund_on: [5xx], refund_cap: 100% }
`

func opened(t *testing.T) *weir.Weir {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// Asks a server by HTTP, as this client says by X-Forwarded-For.
func asked(t *testing.T, server *httptest.Server, path, client string) *http.Response {
	t.Helper()
	request, _ := http.NewRequest("GET", server.URL+path, nil)
	request.Header.Set("X-Forwarded-For", client)
	request.Header.Set("X-Real-Ip", client)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}

func hello(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("hello")) }

func failed(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(503) }

func check(t *testing.T, w *weir.Weir, h http.Handler) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	for i, want := range []int{200, 200, 429} {
		if got := asked(t, server, "/two", "203.0.113.1").StatusCode; got != want {
			t.Fatalf("request %d: %d, not %d", i, got, want)
		}
	}
	if got := asked(t, server, "/two", "203.0.113.2").StatusCode; got != 200 {
		t.Fatalf("another client: %d", got)
	}
	if got := asked(t, server, "/failed", "203.0.113.1"); got.StatusCode != 503 || got.Header.Get("RateLimit") == "" {
		t.Fatal(got.Status)
	}
	answer, err := w.Check(&weir.Request{Path: "/failed", DryRun: true})
	if err != nil || answer.Remaining != 9 {
		t.Fatal(answer, err)
	}
}

func TestChi(t *testing.T) {
	w := opened(t)
	router := chi.NewRouter()
	limit := func(next http.Handler) http.Handler { return w.Handler(next, nil) }
	router.Use(limit)
	router.Route("/", func(inner chi.Router) {
		inner.Use(limit) // met twice, counted once
		inner.Get("/two", hello)
		inner.Get("/failed", failed)
	})
	check(t, w, router)
}

func TestChiBehindRealIP(t *testing.T) {
	w := opened(t)
	router := chi.NewRouter()
	router.Use(chimiddleware.RealIP, func(next http.Handler) http.Handler { return w.Handler(next, nil) })
	router.Get("/two", hello)
	router.Get("/failed", failed)
	check(t, w, router)
}

func TestGorilla(t *testing.T) {
	w := opened(t)
	router := mux.NewRouter()
	router.Use(func(next http.Handler) http.Handler { return w.Handler(next, &weir.Middleware{SkipFailed: true}) })
	router.HandleFunc("/two", hello)
	router.HandleFunc("/failed", failed)
	check(t, w, router)
}

func TestGorillaBehindProxyHeaders(t *testing.T) {
	w := opened(t)
	router := mux.NewRouter()
	router.HandleFunc("/two", hello)
	router.HandleFunc("/failed", failed)
	check(t, w, handlers.ProxyHeaders(w.Handler(router, nil)))
}
