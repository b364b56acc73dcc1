// SPDX-License-Identifier: Apache-2.0

package weir

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func opened(t *testing.T, rules string, options *Options) *Weir {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte("version: 1\n"+rules), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Open(file, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func checked(t *testing.T, w *Weir, r Request) *Answer {
	t.Helper()
	answer, err := w.Check(&r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func is(t *testing.T, got, want any) {
	t.Helper()
	if got != want {
		t.Fatalf("%v, not %v", got, want)
	}
}

func TestAnswers(t *testing.T) {
	w := opened(t, "limits: [ { name: user, key: [user, header.x-key], rate: 1/h, refund_on: [5xx], refund_cap: 100% } ]\n", nil)
	request := Request{Attributes: map[string]string{"user": "ann"}, Headers: map[string]string{"X-Key": "k"}, Reserve: true}
	first := checked(t, w, request)
	is(t, first.Allowed, true)
	denied := checked(t, w, request)
	is(t, denied.Status, 429)
	is(t, denied.DeniedBy, "user")
	is(t, denied.Limits[0].Limit, uint64(1))
	is(t, denied.RetryAfter > 0 && denied.RetryAfter <= 2*time.Hour, true)
	is(t, strings.Contains(denied.Body, `"violated-policies":["user"]`), true)
	is(t, w.Report(first.Reservation, 503), nil)
	again := checked(t, w, request)
	is(t, again.Allowed, true)
	is(t, w.Settle(again.Reservation, 0), nil)
	is(t, checked(t, w, request).Allowed, true)
	_, err := w.Check(&Request{Path: "no/slash"})
	is(t, err.(*Error).Code, Syntax)
	is(t, w.Release("forged").(*Error).Code, Syntax)
	if _, err = Open("no/such/file", nil); err == nil || err.(*Error).Code != Rules {
		t.Fatal(err)
	}
	is(t, w.Refunds(), true)
	w.Close()
	_, err = w.Check(&request)
	is(t, err, errClosed)
}

func TestProcessesAndGoroutinesShareAState(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	var admitted atomic.Int64
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		w := opened(t, "limits: [ { name: all, key: [], rate: 1000/h, algorithm: sliding_log } ]\n", &Options{State: state})
		for j := 0; j < 2; j++ {
			group.Add(1)
			go func() {
				defer group.Done()
				for k := 0; k < 200; k++ {
					if answer, err := w.Check(&Request{}); err == nil && answer.Allowed {
						admitted.Add(1)
					}
				}
			}()
		}
	}
	group.Wait()
	is(t, admitted.Load(), int64(1000))
}

func ask(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest("GET", path, nil)
	request.RemoteAddr = "127.0.0.1:4711"
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	return recorder
}

func asksAndPanics(h http.Handler, path string) (said any) {
	defer func() { said = recover() }()
	ask(h, path)
	return nil
}

const middlewareRules = `limits:
  - { name: two, match: { path: /two }, key: [client.ip], rate: 2/h, algorithm: sliding_log }
  - { name: queue, match: { path: /queue }, key: [], rate: 1/h, burst: 5, algorithm: leaky_bucket, queue: true }
  - { name: held, match: { path: /held }, key: [], algorithm: concurrency, limit: 1, life: 1h }
  - { name: failed, match: { path: /failed }, key: [], rate: 5/h, refund_on: [5xx], refund_cap: 100% }
  - { name: host, match: { path: /host }, key: [header.host], rate: 1/h }
`

func TestMiddleware(t *testing.T) {
	w := opened(t, middlewareRules, nil)
	var inside http.Handler
	h := w.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		is(t, AnswerOf(r).Allowed, true)
		switch r.URL.Path {
		case "/held":
			is(t, ask(inside, "/held").Code, 429)
		case "/failed":
			if r.URL.RawQuery == "panic" {
				panic("in the handler")
			}
			rw.WriteHeader(503)
		}
	}), nil)
	inside = h
	first := ask(h, "/two", "X-Forwarded-For", "203.0.113.1")
	is(t, first.Code, 200)
	is(t, first.Header().Get("X-RateLimit-Remaining"), "1")
	is(t, ask(h, "/two", "X-Forwarded-For", "198.51.100.1", "X-Forwarded-For", "203.0.113.1").Code, 200)
	denied := ask(h, "/two", "Forwarded", "for=203.0.113.1")
	is(t, denied.Code, 429)
	is(t, denied.Header().Get("Content-Type"), "application/problem+json")
	is(t, denied.Header().Get("Retry-After") != "", true)
	is(t, ask(h, "/two").Code, 200)
	is(t, ask(h, "/held").Code, 200)
	is(t, ask(h, "/held").Code, 200)
	is(t, ask(h, "/failed").Code, 503)
	is(t, checked(t, w, Request{Path: "/failed", DryRun: true}).Remaining, uint64(5))
	is(t, asksAndPanics(h, "/failed?panic"), "in the handler")
	is(t, checked(t, w, Request{Path: "/failed", DryRun: true}).Remaining, uint64(5))
	is(t, ask(h, "http://one.example/host").Code, 200)
	is(t, ask(h, "http://two.example/host").Code, 200)
	is(t, ask(h, "http://one.example/host").Code, 429)
	is(t, ask(h, "/%zz"[:1]+"%25zz").Code, 200)

	is(t, ask(h, "/queue").Code, 200)
	before := checked(t, w, Request{Path: "/queue", DryRun: true}).Delay
	ctx, leave := context.WithCancel(context.Background())
	leave()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/queue", nil).WithContext(ctx))
	is(t, checked(t, w, Request{Path: "/queue", DryRun: true}).Delay <= before, true)
	w.Close()
	is(t, ask(h, "/two").Code, 503)
	is(t, ask(w.Handler(http.NotFoundHandler(), &Middleware{FailOpen: true}), "/two").Code, 404)
}

func TestTheRulesSayWhatAStateThatCannotBeUsedMeans(t *testing.T) {
	const busy, rules = -8, -11 // WEIR_ERR_BUSY, WEIR_ERR_RULES
	for says, passes := range map[string]bool{"": false, "open": true, "closed": false, "local": false} {
		head := ""
		if says != "" {
			head = "on_store_error: " + says + "\n"
		}
		w := opened(t, head+"limits: [{name: one, key: [], rate: 1/h}]\n", nil)
		g := &guard{weir: w, given: &Middleware{}}
		rw := httptest.NewRecorder()
		is(t, g.failed(rw, httptest.NewRequest("GET", "/", nil), &Error{busy, "busy"}), passes)
		is(t, rw.Code, map[bool]int{true: 200, false: 503}[passes]) // 200: nothing is written yet
		is(t, g.failed(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil), &Error{rules, "rules"}), false)
	}
}

// Lines that weir logs, in their order.
type heard struct {
	lock   sync.Mutex
	levels []Level
	texts  []string
}

func (h *heard) log(level Level, text string) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.levels, h.texts = append(h.levels, level), append(h.texts, text)
}

func (h *heard) count() int {
	h.lock.Lock()
	defer h.lock.Unlock()
	return len(h.texts)
}

func waitUntil(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come within a minute")
		}
	}
}

func TestAStateThatCannotBeOpenedIsAStateThatDoesNotAnswer(t *testing.T) {
	const rules = `headers: [draft]
limits:
  - { name: open, match: { path: /open }, key: [], rate: 1/30d, on_store_error: open }
  - { name: closed, match: { path: /closed }, key: [], rate: 1/30d, on_store_error: closed }
  - { name: local, match: { path: /local }, key: [], rate: 1/30d }
`
	folder, said := filepath.Join(t.TempDir(), "run"), &heard{}
	state := filepath.Join(folder, "state")
	w := opened(t, rules, &Options{State: state, Log: said.log})
	is(t, said.count(), 1)
	is(t, said.levels[0], Problem)
	is(t, strings.Contains(said.texts[0], "cannot open the state, and tries again every second: "+state), true)
	is(t, strings.Contains(w.StateError().Error(), state), true)
	for i := 0; i < 3; i++ {
		is(t, checked(t, w, Request{Path: "/open"}).Allowed, true)
		is(t, checked(t, w, Request{Path: "/closed"}).Status, 503)
		is(t, checked(t, w, Request{Path: "/local"}).Allowed, i == 0)
	}
	is(t, checked(t, w, Request{Path: "/local"}).StoreFailed, true)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool { return w.StateError() == nil })
	is(t, checked(t, w, Request{Path: "/closed"}).Allowed, true)
	is(t, checked(t, w, Request{Path: "/closed"}).Status, 429)
	waitUntil(t, func() bool { return said.count() == 2 })
	is(t, said.levels[1], Info)
	is(t, said.texts[1], "the state can be used again")
	if _, err := Open(filepath.Join(folder, "nothing.yaml"), &Options{State: state}); err == nil {
		t.Fatal("rules that are not there")
	}
}

func TestPenaltiesWithoutAServerAreSaidAndLimitsHold(t *testing.T) {
	folder, said := t.TempDir(), &heard{}
	rules := `
headers: [draft]
standing: { by: [client.ip], file: ` + folder + `/standing.db }
limits: [{ name: all, key: [client.ip], rate: 2/30d }]
penalties: [{ name: guess, key: [client.ip], strikes: 2/h, ladder: [suspend 1h] }]
`
	w := opened(t, rules, &Options{State: filepath.Join(folder, "state"), Log: said.log})
	is(t, said.count(), 1)
	is(t, said.levels[0], Problem)
	is(t, strings.Contains(said.texts[0], "no `weir serve` with penalties runs on the state file"), true)
	for i := 0; i < 6; i++ {
		is(t, checked(t, w, Request{Path: "/", IP: "192.0.2.1"}).Allowed, i < 2)
	}
	waitUntil(t, func() bool { return said.count() == 2 }) // lines are logged by a goroutine
	is(t, strings.Contains(said.texts[1], "strikes were lost so far"), true)
}

func TestAStateThatMustOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nlimits: [{name: one, key: [], rate: 1/h}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, &Options{State: file + ".folder/state", StateMustOpen: true}); err == nil {
		t.Fatal("a folder that is not there")
	}
}

func TestWhatIsDeprecatedOrUnknownIsLogged(t *testing.T) {
	said := &heard{}
	w := opened(t, "headers: [draft]\nlimits: [{name: one, key: [tenant], rate: 9/h}]\n", &Options{Log: said.log})
	is(t, said.count(), 1)
	is(t, said.levels[0], Warning)
	is(t, strings.Contains(said.texts[0], "unknown attribute `tenant`"), true)
	checked(t, w, Request{Attributes: map[string]string{"tennant": "acme"}})
	waitUntil(t, func() bool { return said.count() == 2 })
	is(t, strings.Contains(said.texts[1], "`tennant`"), true)
}

func TestADefaultThatHasChangedIsLogged(t *testing.T) {
	said := &heard{}
	opened(t, "limits: [{name: one, key: [], rate: 9/h}]\n", &Options{Log: said.log})
	is(t, said.count(), 1)
	is(t, said.levels[0], Warning)
	is(t, strings.Contains(said.texts[0], "X-RateLimit-Reset is a Unix time now"), true)
}

// What a handler that sees this RemoteAddr answers; `local` is what the connection says of itself.
func askFrom(h http.Handler, remote string, local net.Addr, headers ...string) int {
	request := httptest.NewRequest("GET", "/", nil)
	request.RemoteAddr = remote
	request = request.WithContext(context.WithValue(request.Context(), http.LocalAddrContextKey, local))
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	return recorder.Code
}

const addressRules = `limits:
  - { name: each, key: [client.ip], rate: 1/h, algorithm: sliding_log }
`

func TestTheClientIsThePeerOrWhatAHandlerOutsideSays(t *testing.T) {
	var logged strings.Builder
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	tcp, unix := net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}), net.Addr(&net.UnixAddr{Name: "/run/x", Net: "unix"})
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, one := range []struct {
		name, remote, forwarded string
		local                   net.Addr
		client                  string // whose limit is used up; "": nobody's, and the answer is 503
	}{
		{"a peer", "203.0.113.1:4711", "203.0.113.99", tcp, "203.0.113.1"},
		{"a proxy", "127.0.0.1:4711", "203.0.113.2", tcp, "203.0.113.2"},
		{"a peer with a zone", "[fe80::1%eth0]:4711", "", tcp, "fe80::1"},
		{"a Unix socket", "@", "203.0.113.3", unix, "203.0.113.3"},
		{"a Unix socket without a name", "", "203.0.113.4", unix, "203.0.113.4"},
		{"chi's RealIP", "203.0.113.5", "203.0.113.98", tcp, "203.0.113.5"},
		{"chi's RealIP over a Unix socket", "203.0.113.6", "203.0.113.97", unix, "203.0.113.6"},
		{"a client that says it is the proxy", "127.0.0.1", "203.0.113.96", tcp, "127.0.0.1"},
		{"an adapter of Lambda", "2001:db8::7", "", nil, "2001:db8::7"},
		{"brackets", "[2001:db8::8]", "203.0.113.95", nil, "2001:db8::8"},
		{"what looks like a Unix socket", "@", "203.0.113.94", tcp, ""},
		{"nothing", "", "", nil, ""},
		{"a name", "localhost:80", "203.0.113.93", tcp, ""},
		{"garbage", "203.0.113.1, 203.0.113.2", "", tcp, ""},
	} {
		w := opened(t, addressRules, nil)
		logged.Reset()
		h := w.Handler(ok, nil)
		forwarded := []string{"X-Forwarded-For", one.forwarded}
		if one.forwarded == "" {
			forwarded = nil
		}
		if one.client == "" {
			var said error
			is(t, askFrom(h, one.remote, one.local, forwarded...), 503)
			open := w.Handler(ok, &Middleware{FailOpen: true, OnError: func(_ *http.Request, err error) { said = err }})
			is(t, askFrom(open, one.remote, one.local, forwarded...), 200)
			is(t, said, errNoAddress)
			continue
		}
		for _, status := range []int{200, 429, 429} {
			if got := askFrom(h, one.remote, one.local, forwarded...); got != status {
				t.Fatalf("%s: %d, not %d", one.name, got, status)
			}
		}
		is(t, checked(t, w, Request{IP: one.client, DryRun: true}).Allowed, false)
		bare := !strings.Contains(one.remote, ":4711") && one.local != unix || one.remote == "203.0.113.6"
		is(t, strings.Count(logged.String(), "Put weir's handler outside"), map[bool]int{true: 1, false: 0}[bare])
	}
}

func TestAUnixSocketIsOneBecauseItsConnectionSaysSo(t *testing.T) {
	w := opened(t, addressRules, nil)
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: w.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil)}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", listener.Addr().String())
	}}}
	for _, status := range []int{200, 429} {
		request, _ := http.NewRequest("GET", "http://shop/", nil)
		request.Header.Set("X-Forwarded-For", "203.0.113.1")
		reply, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		is(t, reply.StatusCode, status)
	}
	is(t, checked(t, w, Request{IP: "203.0.113.1", DryRun: true}).Allowed, false)
}

func TestOutcomesGiveBack(t *testing.T) {
	for _, one := range []struct {
		options Middleware
		status  int
		cost    uint64
	}{{Middleware{}, 200, 1}, {Middleware{SkipSuccessful: true}, 200, 0}, {Middleware{SkipSuccessful: true}, 404, 1},
		{Middleware{SkipFailed: true}, 200, 1}, {Middleware{SkipFailed: true}, 404, 0},
		{Middleware{Settle: func(*http.Request, int) (uint64, bool) { return 3, true }, SkipFailed: true}, 404, 3},
		{Middleware{Settle: func(*http.Request, int) (uint64, bool) { return 3, false }, SkipFailed: true}, 404, 0}} {
		w := opened(t, "limits: [ { name: paid, key: [], rate: 10/h, algorithm: sliding_log } ]\n", nil)
		options := one.options
		h := w.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(one.status) }), &options)
		is(t, ask(h, "/").Code, one.status)
		is(t, checked(t, w, Request{DryRun: true}).Remaining, 10-one.cost)
	}
}

// Beside a `weir serve` on the same rules, WEIR_TEST_RULES: a third 401 within an hour suspends a user, a third 403
// its network.
func TestOutcomesAreStrikes(t *testing.T) {
	rules := os.Getenv("WEIR_TEST_RULES")
	if rules == "" {
		t.Skip("no server with penalties: test_languages.py starts one")
	}
	w, err := Open(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	forwarded := "192.0.2.1"
	request := Request{Path: "/", IP: "10.0.0.1", ForwardedFor: &forwarded}
	suspended := func(r Request) bool {
		r.DryRun = true
		return checked(t, w, r).DeniedBy == "standing"
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what + " did not come")
			}
		}
	}
	for _, status := range []int{403, 403, 200} {
		is(t, w.Outcome(&request, status), nil)
	}
	is(t, w.IsStrike(403), true)
	is(t, w.IsStrike(200) || w.IsStrike(-1) || w.IsStrike(600), false)
	is(t, suspended(request), false)
	for _, status := range []int{0, -1, 99, 600} {
		is(t, w.Outcome(&request, status).(*Error).Code, Range)
	}
	is(t, w.Outcome(&request, 403), nil)
	until("the suspension", func() bool { return suspended(request) })
	is(t, suspended(Request{Path: "/", IP: "10.0.0.1"}), false)

	h := w.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.Header.Del("X-User") // what was decided counts
		if r.URL.Path == "/401" {
			rw.WriteHeader(401)
		}
	}), nil)
	for _, path := range []string{"/401", "/401", "/200"} {
		is(t, ask(h, path, "X-User", "ann").Code == 403, false)
	}
	is(t, ask(h, "/401", "X-User", "ann").Code, 401)
	until("the suspension of the user", func() bool { return ask(h, "/200", "X-User", "ann").Code == 403 })
	is(t, ask(h, "/401", "X-User", "bob").Code, 401)
	is(t, ask(h, "/200", "X-User", "bob").Code, 200)
}

// --- What a program gives ---------------------------------------------------------------------------

const oneRule = "limits: [ { name: one, key: [client.ip], rate: 9/h, algorithm: sliding_log } ]\n"

func used(t *testing.T, w *Weir, ip string) uint64 {
	t.Helper()
	return 9 - checked(t, w, Request{IP: ip, DryRun: true}).Remaining
}

func hello(rw http.ResponseWriter, r *http.Request) { _, _ = rw.Write([]byte("hello")) }

func TestTheOptionIPSaysWhoTheClientIs(t *testing.T) {
	w := opened(t, oneRule, nil)
	var errs []error
	h := w.Handler(http.HandlerFunc(hello), &Middleware{FailOpen: true, IP: func(r *http.Request) string {
		return r.Header.Get("X-Client")
	}, OnError: func(_ *http.Request, err error) { errs = append(errs, err) }})
	is(t, ask(h, "/", "X-Client", "127.0.0.1", "X-Forwarded-For", "203.0.113.1").Code, 200)
	is(t, used(t, w, "127.0.0.1"), uint64(1)) // no proxy
	is(t, ask(h, "/", "X-Client", "somebody").Code, 500)
	is(t, ask(h, "/").Code, 200) // none: FailOpen
	is(t, len(errs), 2)
	is(t, errs[1], errNoAddress)
	closed := w.Handler(http.HandlerFunc(hello), &Middleware{IP: func(*http.Request) string { return "" }})
	is(t, ask(closed, "/").Code, 503)
}

func TestAHandlerThatARequestMeetsTwiceCountsItOnce(t *testing.T) {
	w, other := opened(t, oneRule, nil), opened(t, oneRule, nil)
	options := &Middleware{Cost: func(*http.Request) uint64 { return 2 }}
	var errs []error
	watched := &Middleware{FailOpen: true, OnError: func(_ *http.Request, err error) { errs = append(errs, err) }}
	end := http.Handler(http.HandlerFunc(hello))
	for _, one := range []struct {
		h    http.Handler
		code int
		used uint64
	}{{w.Handler(w.Handler(end, nil), nil), 200, 1}, {w.Handler(other.Handler(w.Handler(end, options), nil), options), 200, 3},
		{w.Handler(w.Handler(end, watched), nil), 500, 4}} {
		is(t, ask(one.h, "/").Code, one.code)
		is(t, used(t, w, "127.0.0.1"), one.used)
	}
	is(t, len(errs), 1)
	is(t, errs[0], error(errTwice))
	is(t, used(t, other, "127.0.0.1"), uint64(1))
}

// A ResponseWriter as HTTP/2 has it, which may also read.
type whole struct {
	*httptest.ResponseRecorder
	pushed, read int
}

func (w *whole) Push(string, *http.PushOptions) error { w.pushed++; return nil }

func (w *whole) ReadFrom(source io.Reader) (int64, error) {
	w.read++
	return io.Copy(w.ResponseRecorder, source)
}

func TestWhatAWriterCanDoIsKept(t *testing.T) {
	for _, options := range []*Middleware{nil, {SkipFailed: true}, {Settle: func(*http.Request, int) (uint64, bool) { return 3, true }}} {
		w := opened(t, oneRule, nil)
		pushes := true
		h := w.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			pusher, can := rw.(http.Pusher)
			is(t, can, pushes)
			if can {
				is(t, pusher.Push("/style.css", nil), nil)
			}
			n, err := io.Copy(rw, struct{ io.Reader }{strings.NewReader("of a file")})
			is(t, n, int64(9))
			is(t, err, nil)
		}), options)
		rw := &whole{ResponseRecorder: httptest.NewRecorder()}
		request := httptest.NewRequest("GET", "/", nil)
		request.RemoteAddr = "127.0.0.1:4711"
		h.ServeHTTP(rw, request)
		is(t, rw.pushed, 1)
		is(t, rw.read, 1)
		is(t, rw.Code, 200)
		is(t, rw.Body.String(), "of a file")
		pushes = false // over HTTP/1.1
		is(t, ask(h, "/").Body.String(), "of a file")
		cost := uint64(1)
		if options != nil && options.Settle != nil {
			cost = 3
		}
		is(t, used(t, w, "127.0.0.1"), 2*cost)
	}
}

func TestNamesThatNoRuleReadsAreIgnored(t *testing.T) {
	w := opened(t, oneRule, nil)
	for i := 0; i < 1000; i++ {
		r := Request{IP: "192.0.2.1", DryRun: true, Attributes: map[string]string{"tenant" + strconv.Itoa(i): "a",
			"header.x-" + strconv.Itoa(i): "b", strings.Repeat("x", 200): "c"}}
		is(t, checked(t, w, r).Remaining, uint64(9))
	}
	if _, known := w.unread.Load("header.x-1"); known {
		t.Fatal("names of fields are kept")
	}
}

func TestAClockForTestsMovesByAdvanceOnly(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := opened(t, "state: { file: never }\nlimits: [ { name: a, key: [], rate: 1/min, algorithm: sliding_log },\n"+
		"  { name: m, key: [], quota: 3/month } ]\n", &Options{TestClock: start})
	is(t, checked(t, w, Request{}).Allowed, true)
	is(t, checked(t, w, Request{}).RetryAfter, time.Minute)
	is(t, w.Advance(time.Minute-1), nil)
	is(t, checked(t, w, Request{}).RetryAfter, time.Duration(1))
	is(t, w.Advance(1), nil)
	for i := 0; i < 2; i++ {
		is(t, checked(t, w, Request{}).Allowed, true)
		is(t, w.Advance(time.Minute), nil)
	}
	is(t, checked(t, w, Request{}).RetryAfter, (31*24*60-3)*time.Minute)
	is(t, w.Advance(-1).(*Error).Code, Range)
	is(t, w.Advance(Never).(*Error).Code, Range)
	if _, err := os.Stat("never"); err == nil {
		t.Fatal("a state file was made")
	}
	is(t, opened(t, oneRule, nil).Advance(1).(*Error).Code, Unsupported)
	_, err := Open("weir.yaml", &Options{TestClock: time.Unix(-1, 0)})
	is(t, err.(*Error).Code, Range)
}
