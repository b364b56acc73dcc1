// SPDX-License-Identifier: Apache-2.0

package weir

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	reserveLife = 10 * time.Minute // requests that take longer keep their charge
	heldMax     = 1024             // denials that wait (a tarpit)
)

// Middleware of net/http; zero is the default everywhere.
type Middleware struct {
	// Attributes that the rules read: user, plan, org, … Wrap the middleware by what authenticates.
	Attributes func(*http.Request) map[string]string
	// Cost of a request; nil: 1. A cost of 0 asks whether a limit is used up.
	Cost func(*http.Request) uint64
	// Settle says the true cost after the response; false: it stays as charged.
	Settle func(r *http.Request, status int) (uint64, bool)
	// SkipSuccessful and SkipFailed give back what requests with a status below 400, or from 400 on, were charged,
	// unless Settle says their cost.
	SkipSuccessful, SkipFailed bool
	// Skip lets a request pass unlimited.
	Skip func(*http.Request) bool
	// OnLimited is called for each denial; true: it has answered.
	OnLimited func(http.ResponseWriter, *http.Request, *Answer) bool
	// IP says the client's address, in place of RemoteAddr; X-Forwarded-For and Forwarded do not count then. "": it has
	// none.
	IP func(*http.Request) string
	// OnError is called where weir cannot decide, and for mistakes of the program, which are answered with 500.
	OnError func(*http.Request, error)
	// FailOpen lets requests pass where weir cannot decide; else on_store_error at the top of the rules file says so of
	// a state that cannot be used, and requests are answered with 503.
	FailOpen bool
	// Trusted: header fields may say the class of priority.
	Trusted bool
}

type answerKey struct{}

// What has decided a request: a list, from its context.
type guardKey struct{}

// decided is the context of a request that was decided: it has what answerKey and guardKey name.
type decided struct {
	context.Context
	guard  *guard
	answer *Answer
	before *decided
}

func (d *decided) Value(key any) any {
	switch key.(type) {
	case answerKey:
		return d.answer
	case guardKey:
		return d
	}
	return d.Context.Value(key)
}

// misuse is a mistake of the program.
type misuse string

func (m misuse) Error() string { return "weir: " + string(m) }

const errTwice = misuse("two handlers of one Weir meet one request, which would be charged twice: use one, with all options, " +
	"or Open the rules of each")

// AnswerOf is what weir has said of the request; nil: nothing.
func AnswerOf(r *http.Request) *Answer {
	answer, _ := r.Context().Value(answerKey{}).(*Answer)
	return answer
}

// Handler limits what reaches `next`. Put it outside of whatever changes RemoteAddr: the peer counts, and what
// trusted proxies have forwarded.
func (w *Weir) Handler(next http.Handler, options *Middleware) http.Handler {
	given := options
	if options == nil {
		options = &Middleware{}
	}
	return &guard{weir: w, next: next, Middleware: *options, given: given}
}

// Of a request of net/http from which the rules read no header.
var noLines = http.Header{}

type guard struct {
	Middleware
	given *Middleware // what Handler was called with: handlers with the same are one
	weir  *Weir
	next  http.Handler
	held  atomic.Int64
	bare  sync.Once // has said that RemoteAddr is no peer
}

func joined(h http.Header, name string) *string {
	values := h.Values(name)
	if len(values) == 0 {
		return nil
	}
	text := strings.Join(values, ", ")
	return &text
}

var errNoAddress = errors.New("weir: the request has no address of its client: RemoteAddr is neither an address with a " +
	"port nor one without, and the connection is no Unix socket")

// Whether the request came over a Unix socket. Only the connection says so: anything may have written RemoteAddr.
func overUnix(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr)
	return local != nil
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// Says once what an address without a port means.
func (g *guard) sayBare(r *http.Request) {
	g.bare.Do(func() {
		const text = "weir: RemoteAddr is %q, without a port: a handler or an adapter outside of weir's has written it. It " +
			"counts as the client, and X-Forwarded-For is not read. Put weir's handler outside of the one that changes " +
			"RemoteAddr, and name your proxies in server.trusted_proxies"
		if server, _ := r.Context().Value(http.ServerContextKey).(*http.Server); server != nil && server.ErrorLog != nil {
			server.ErrorLog.Printf(text, r.RemoteAddr)
		} else {
			log.Printf(text, r.RemoteAddr)
		}
	})
}

// Whose request it is. The peer of a connection has a port, and may be a proxy. An address without one is what a handler
// outside (chi's RealIP, gorilla's ProxyHeaders) or an adapter (of AWS Lambda) says of the client: no proxy, even if it is
// 127.0.0.1, whose X-Forwarded-For would be read again.
func (g *guard) client(r *http.Request, given *Request) error {
	if g.IP != nil {
		given.IP = g.IP(r)
		if given.IP == "" {
			return errNoAddress
		}
		if !isAddress(given.IP) {
			return misuse("IP: " + strconv.Quote(given.IP) + " is no address")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	bare := strings.TrimSuffix(strings.TrimPrefix(r.RemoteAddr, "["), "]")
	switch {
	case err == nil && isAddress(host):
		given.IP = host
	case isAddress(bare):
		given.IP = bare
		g.sayBare(r)
		return nil
	case !overUnix(r):
		return errNoAddress
	}
	given.ForwardedFor, given.Forwarded = joined(r.Header, "X-Forwarded-For"), joined(r.Header, "Forwarded")
	return nil
}

func (g *guard) request(r *http.Request) (*Request, error) {
	given := &Request{Method: r.Method, Path: r.RequestURI, Host: r.Host, lines: noLines, Untrusted: !g.Trusted, Life: reserveLife}
	if given.Path == "" {
		given.Path = r.URL.RequestURI()
	}
	if err := g.client(r, given); err != nil {
		return nil, err
	}
	headers := g.weir.names.Load().headers
	if len(headers) > 0 {
		given.lines = http.Header{}
	}
	for _, one := range headers { // what follows may change its header
		if lines, found := r.Header[one.name]; found {
			given.lines[one.name] = lines
		}
	}
	if g.Attributes != nil {
		given.Attributes = g.Attributes(r)
	}
	if g.Cost != nil {
		given.Cost = g.Cost(r)
		given.Free = given.Cost == 0
	}
	given.Reserve = !given.Free && (g.Settle != nil || g.SkipSuccessful || g.SkipFailed || g.weir.Refunds())
	given.ReserveDelayed = true
	return given, nil
}

// Whether the client stays that long.
func wait(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *guard) deny(rw http.ResponseWriter, r *http.Request, answer *Answer) {
	if g.OnLimited != nil && g.OnLimited(rw, r, answer) {
		return
	}
	if answer.Delay > 0 && g.held.Add(1) <= heldMax {
		stays := wait(r.Context(), answer.Delay)
		g.held.Add(-1)
		if !stays {
			return
		}
	} else if answer.Delay > 0 {
		g.held.Add(-1)
	}
	if answer.Type != "" {
		rw.Header().Set("Content-Type", answer.Type)
	}
	rw.WriteHeader(answer.Status)
	_, _ = io.WriteString(rw, answer.Body)
}

// Whether the request passes although there is no answer.
func (g *guard) failed(rw http.ResponseWriter, r *http.Request, err error) bool {
	var known *Error
	var wrong misuse
	if errors.As(err, &known) && (known.Code == Syntax || known.Code == TooLarge) {
		http.Error(rw, known.Text, http.StatusBadRequest) // the client's mistake
		return false
	}
	if g.OnError != nil {
		g.OnError(r, err)
	}
	if errors.As(err, &wrong) || (known != nil && known.Code == Range) { // the program's: a cost that cannot be
		http.Error(rw, "the server has failed", http.StatusInternalServerError)
		return false
	}
	passes := g.FailOpen || (known != nil && g.weir.passes(known.Code))
	if !passes {
		http.Error(rw, "the rate limiter is out of order", http.StatusServiceUnavailable)
	}
	return passes
}

// Renews a lease until the function that it returns ends it.
func (g *guard) hold(answer *Answer) func() {
	life := time.Hour
	for i := range answer.Limits {
		if one := &answer.Limits[i]; one.concurrency && one.Window > 0 && one.Window < life {
			life = one.Window
		}
	}
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(life/3 + 1)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				_ = g.weir.Renew(answer.Lease) // one that is gone ends with its life
			}
		}
	}()
	return func() {
		close(done)
		_ = g.weir.Release(answer.Lease)
	}
}

// Whether this handler, or another one with the same options, has decided the request. Errors: errTwice.
func (g *guard) met(r *http.Request) (bool, error) {
	last, _ := r.Context().Value(guardKey{}).(*decided)
	for each := last; each != nil; each = each.before {
		if each.guard.weir != g.weir {
			continue
		}
		if each.guard != g && each.guard.given != g.given {
			return false, errTwice
		}
		return true, nil
	}
	return false, nil
}

// What the outcome gives back, and whether it is a strike.
func (g *guard) end(r *http.Request, given *Request, answer *Answer, status int) {
	if status == 0 {
		return // no answer was begun
	}
	if g.weir.IsStrike(status) {
		_ = g.weir.Outcome(given, status)
	}
	if answer.Reservation == nil || !given.Reserve {
		return
	}
	if g.Settle != nil {
		if cost, known := g.Settle(r, status); known {
			_ = g.weir.Settle(answer.Reservation, cost)
			return
		}
	}
	if status < 400 && g.SkipSuccessful || status >= 400 && g.SkipFailed {
		_ = g.weir.Settle(answer.Reservation, 0)
	} else if g.weir.Refunds() {
		_ = g.weir.Report(answer.Reservation, status)
	}
}

// Sets the fields of an answer, without canonical names being made again and in one list of values. Of a denial, fields
// of the same name follow each other.
func (g *guard) setFields(header http.Header, answer *Answer) {
	values := make([]string, len(answer.Fields))
	for i, field := range answer.Fields {
		key := g.weir.known.key(field[0])
		if i == 0 || answer.Allowed || first(header[key]) == "" {
			values[i] = field[1]
			header[key] = values[i : i+1 : i+1]
		} else {
			header[key] = append(header[key], field[1])
		}
	}
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func (g *guard) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	met, err := g.met(r)
	if err != nil {
		g.failed(rw, r, err)
		return
	}
	if met {
		g.next.ServeHTTP(rw, r)
		return
	}
	if g.Skip != nil && g.Skip(r) {
		g.next.ServeHTTP(rw, r)
		return
	}
	given, err := g.request(r)
	var answer *Answer
	if err == nil {
		answer, err = g.weir.Check(given)
	}
	if err != nil {
		if g.failed(rw, r, err) {
			g.next.ServeHTTP(rw, r)
		}
		return
	}
	g.setFields(rw.Header(), answer)
	if !answer.Allowed {
		g.deny(rw, r, answer)
		return
	}
	if answer.Lease != "" {
		defer g.hold(answer)()
	}
	if answer.Delay > 0 && !wait(r.Context(), answer.Delay) {
		if answer.Reservation != nil {
			_ = g.weir.Cancel(answer.Reservation)
		}
		return
	}
	before, _ := r.Context().Value(guardKey{}).(*decided)
	r = r.WithContext(&decided{Context: r.Context(), guard: g, answer: answer, before: before})
	if (answer.Reservation == nil || !given.Reserve) && !g.weir.names.Load().anyStrike {
		g.next.ServeHTTP(rw, r)
		return
	}
	writer := &statusWriter{ResponseWriter: rw}
	panics := true
	defer func() {
		if writer.status == 0 && panics {
			writer.status = http.StatusInternalServerError
		} else if writer.status == 0 && r.Context().Err() == nil {
			writer.status = http.StatusOK // net/http's answer of a handler that writes nothing
		}
		g.end(r, given, answer, writer.status)
	}()
	if pusher, can := rw.(http.Pusher); can {
		g.next.ServeHTTP(struct {
			*statusWriter
			http.Pusher
		}{writer, pusher}, r)
	} else {
		g.next.ServeHTTP(writer, r)
	}
	panics = false
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(data)
}

// ReadFrom keeps what the connection can do, such as sendfile.
func (w *statusWriter) ReadFrom(source io.Reader) (int64, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if reader, can := w.ResponseWriter.(io.ReaderFrom); can {
		return reader.ReadFrom(source)
	}
	return io.Copy(struct{ io.Writer }{w.ResponseWriter}, source)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) Flush() {
	if flusher, can := w.ResponseWriter.(http.Flusher); can {
		flusher.Flush()
	}
}

func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if hijacker, can := w.ResponseWriter.(http.Hijacker); can {
		w.status = http.StatusSwitchingProtocols
		return hijacker.Hijack()
	}
	return nil, nil, errors.New("the connection cannot be taken over")
}
