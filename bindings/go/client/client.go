// SPDX-License-Identifier: Apache-2.0

// Package client is an HTTP client that keeps to servers' rate limits: it paces requests by what answers say, and
// retries. It is a thin layer over libweir-client and decides nothing itself. The guide is docs/languages/go.md.
//
//	limits, err := client.Open(&client.Options{State: "limits.map"})
//	...
//	web := &http.Client{Transport: limits.Transport(nil)}
//
// A Client may be used by any number of goroutines.
package client

/*
#cgo pkg-config: weir-client
#include <stdlib.h>
#include <weir/client.h>

void weirGoDone(void *context, struct weir_client_answer *answer);
bool weirGoHead(void *context, struct weir_client_head *head);
bool weirGoBody(void *context, void *data, size_t size);

static inline bool weir_go_head(void *context, const struct weir_client_head *head)
{
    return weirGoHead(context, (struct weir_client_head *)head);
}

static inline bool weir_go_body(void *context, int status, uint64_t offset, const void *data,
                                size_t size)
{
    return weirGoBody(context, (void *)data, size);
}

// Keeps what libweir-client frees after the call.
static inline void weir_go_done(void *context, const struct weir_client_answer *answer)
{
    weirGoDone(context, (struct weir_client_answer *)answer);
}

static inline int weir_go_submit(struct weir_client *client, struct weir_client_request *request,
                                 uintptr_t handle, uint64_t *id)
{
    request->on_head = weir_go_head;
    request->on_body = weir_go_body;
    request->on_done = weir_go_done;
    request->context = (void *)handle;
    return weir_client_submit(client, request, id);
}
*/
import "C"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime/cgo"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

const (
	headersMax  = 64
	window      = 256 << 10   // bytes of an answer that wait for their reader
	consumedMin = window / 16 // what is read in small pieces is reported together
)

// Jitter is how waits between tries are drawn.
type Jitter int

// FullJitter is the default.
const (
	FullJitter         = Jitter(C.WEIR_CLIENT_JITTER_FULL)
	EqualJitter        = Jitter(C.WEIR_CLIENT_JITTER_EQUAL)
	DecorrelatedJitter = Jitter(C.WEIR_CLIENT_JITTER_DECORRELATED)
	NoJitter           = Jitter(C.WEIR_CLIENT_JITTER_NONE)
)

// NoLimit is the time of a request that may take any.
const NoLimit = time.Duration(math.MaxInt64)

// Options of Open; zero is the default everywhere.
type Options struct {
	State           string        // a file with what is known of limits, which processes share
	Concurrency     uint32        // requests in flight to all hosts; 0: 64
	HostConcurrency uint32        // to one host; 0: 16
	Adaptive        bool          // fewer of them while latency grows
	Tries           uint32        // of one request; 0: 5
	Time            time.Duration // for one request with all waits; 0: 60 s
	TryTime         time.Duration // for one try; 0: 30 s
	Jitter          Jitter
	BackoffBase     time.Duration // the first wait; 0: 100 ms
	BackoffCap      time.Duration // the longest; 0: 20 s
	BodyMost        uint64        // bytes of an answer's body; 0: no bound, since it is read while it arrives
	QueueMost       uint32        // requests that wait or are in flight; 0: 100,000
	RetryOn         []int         // statuses that are retried besides those that always are; at most 16
	RetryStatuses   []int         // exactly these are retried, instead of those that always are; at most 16
	BackoffFactor   float64       // by which waits grow: 1 to 100; 0: 2
	// Rate is the most that is sent to a host, whatever its server says: "10/s", "10/s, api.example.com=5/10s burst 5".
	Rate      string
	UserAgent string
	Seed      uint64 // of jitter, for tests; 0: random
}

// RequestOptions are those of all requests of a Transport; zero is the default everywhere.
type RequestOptions struct {
	IdempotencyKey bool   // send one, the same in all tries, so that any method is retried
	Priority       int    // waiting requests of a higher one go first
	Scope          string // what the server counts by when it is not the client's address, such as an API key
	Tries          uint32
	Time           time.Duration
}

// Limit is what is known of a host's tightest limit; -1: not known.
type Limit struct {
	Limit, Remaining int64
	Reset            time.Duration // until the window ends
	Interval         time.Duration // from one request to the next
}

// Outcome is how a request without a final answer ended.
type Outcome int

// The outcomes; docs/client.md has what each means.
const (
	Limited   = Outcome(C.WEIR_CLIENT_LIMITED)
	TimedOut  = Outcome(C.WEIR_CLIENT_TIMEOUT)
	GaveUp    = Outcome(C.WEIR_CLIENT_GAVE_UP)
	Refused   = Outcome(C.WEIR_CLIENT_REFUSED)
	Cancelled = Outcome(C.WEIR_CLIENT_CANCELLED)
)

// Failed is a request without an answer.
type Failed struct {
	Outcome    Outcome
	Reason     string
	Tries      int
	RetryAfter time.Duration // when a try may succeed; -1: not known
}

func (f *Failed) Error() string {
	text := C.GoString(C.weir_client_outcome_text(C.enum_weir_client_outcome(f.Outcome)))
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}

// Timeout is for net.Error: url.Error asks it.
func (f *Failed) Timeout() bool { return f.Outcome == TimedOut || f.Outcome == Limited }

// Client is open until Close.
type Client struct {
	client *C.struct_weir_client
	lock   sync.RWMutex // held for writing by Close
}

var errClosed = errors.New("the client is closed")

// Open opens a client. `options` may be nil.
func Open(options *Options) (*Client, error) {
	if options == nil {
		options = &Options{}
	}
	state, agent, rate := C.CString(options.State), C.CString(options.UserAgent), C.CString(options.Rate)
	defer C.free(unsafe.Pointer(rate))
	defer C.free(unsafe.Pointer(state))
	defer C.free(unsafe.Pointer(agent))
	given := C.struct_weir_client_options{
		concurrency: C.uint32_t(options.Concurrency), host_concurrency: C.uint32_t(options.HostConcurrency),
		adaptive: C.bool(options.Adaptive), tries: C.uint32_t(options.Tries),
		jitter: C.enum_weir_client_jitter(options.Jitter), body_most: C.uint64_t(options.BodyMost),
		queue_most: C.uint32_t(options.QueueMost), seed: C.uint64_t(options.Seed),
		backoff_factor: C.double(options.BackoffFactor)}
	for _, one := range []struct {
		name string
		time time.Duration
		ns   *C.uint64_t
	}{{"Time", options.Time, &given.time_ns}, {"TryTime", options.TryTime, &given.try_ns},
		{"BackoffBase", options.BackoffBase, &given.backoff_base_ns},
		{"BackoffCap", options.BackoffCap, &given.backoff_cap_ns}} {
		if err := nanoseconds(one.name, one.time, one.ns); err != nil {
			return nil, err
		}
	}
	if options.State != "" {
		given.state_file = state
	}
	if options.UserAgent != "" {
		given.user_agent = agent
	}
	if options.Rate != "" {
		given.rate = rate
	}
	if err := statuses("RetryOn", options.RetryOn, given.retry_on[:]); err != nil {
		return nil, err
	}
	if err := statuses("RetryStatuses", options.RetryStatuses, given.retry_statuses[:]); err != nil {
		return nil, err
	}
	c := &Client{}
	var reason C.struct_weir_reason
	if err := C.weir_client_open(&c.client, &given, &reason); err < 0 {
		return nil, failure(err, C.GoString(&reason.text[0]))
	}
	return c, nil
}

func statuses(name string, from []int, to []C.uint16_t) error {
	if len(from) > len(to) {
		return fmt.Errorf("%s: more than %d statuses", name, len(to))
	}
	for i, status := range from {
		if status < 400 || status > 599 {
			return fmt.Errorf("%s: %d is not a status of 400 to 599", name, status)
		}
		to[i] = C.uint16_t(status)
	}
	return nil
}

func nanoseconds(name string, d time.Duration, ns *C.uint64_t) error {
	if d < 0 {
		return fmt.Errorf("%s: is negative", name)
	}
	*ns = C.uint64_t(d)
	if d == NoLimit {
		*ns = C.WEIR_CLIENT_UNKNOWN
	}
	return nil
}

func failure(code C.int, reason string) error {
	if reason == "" {
		reason = C.GoString(C.weir_error_text(code))
	}
	return errors.New(reason)
}

// Close cancels what is left.
func (c *Client) Close() {
	c.lock.Lock()
	defer c.lock.Unlock()
	C.weir_client_close(c.client) // ignores nil
	c.client = nil
}

// Known is what is known of the tightest limit for the host of a URL, and a scope ("": none). False: nothing is.
func (c *Client) Known(url, scope string) (Limit, bool) {
	texts := [2]*C.char{C.CString(url), C.CString(scope)}
	defer C.free(unsafe.Pointer(texts[0]))
	defer C.free(unsafe.Pointer(texts[1]))
	given := texts[1]
	if scope == "" {
		given = nil
	}
	c.lock.RLock()
	defer c.lock.RUnlock()
	var limit C.struct_weir_client_limit
	if c.client == nil || C.weir_client_known(c.client, texts[0], given, &limit) < 0 {
		return Limit{}, false
	}
	return Limit{signed(limit.limit), signed(limit.remaining), time.Duration(signed(limit.reset_ns)),
		time.Duration(signed(limit.interval_ns))}, true
}

func signed(value C.uint64_t) int64 {
	if value > math.MaxInt64 {
		return -1
	}
	return int64(value)
}

// Expect says how many requests are still to come: where a limit has room for all of them, they are not spread over
// its window.
func (c *Client) Expect(requests uint64) {
	c.lock.RLock()
	defer c.lock.RUnlock()
	if c.client != nil {
		C.weir_client_expect(c.client, C.uint64_t(requests))
	}
}

// Transport is an http.RoundTripper over the client. `options` may be nil.
//
// A final answer comes as it is, also the last 429; an error is a *Failed, or that of the request's context. An answer is
// returned when it has begun, and its body is read while it arrives; from then on nothing is tried again. A body that is
// not read pauses its transfer: close it.
func (c *Client) Transport(options *RequestOptions) http.RoundTripper {
	if options == nil {
		options = &RequestOptions{}
	}
	return &transport{c, *options}
}

type transport struct {
	client  *Client
	options RequestOptions
}

// What libcurl writes itself, and what describes a transfer that has ended.
var own = map[string]bool{"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true,
	"Expect": true}

// The last answer of a request: what C lends, copied.
type ended struct {
	outcome    Outcome
	status     int
	tries      int
	retryAfter time.Duration
	headers    string
	body       []byte
	reason     string
}

// stream is an answer that arrives: C's thread writes it, and one goroutine reads the body.
type stream struct {
	client *Client
	ctx    context.Context
	id     C.uint64_t
	head   chan struct{} // closed when the answer has begun, or ended
	end    chan struct{} // closed when it has ended

	lock     sync.Mutex
	changed  sync.Cond
	begun    bool
	status   int
	headers  string
	buffer   []byte // what has come
	read     int    // bytes of buffer that the reader has
	consumed int    // bytes read, and not reported yet
	closed   bool
	done     *ended
}

func newStream(client *Client, ctx context.Context) *stream {
	s := &stream{client: client, ctx: ctx, head: make(chan struct{}), end: make(chan struct{})}
	s.changed.L = &s.lock
	return s
}

func streamOf(context unsafe.Pointer) *stream { return cgo.Handle(uintptr(context)).Value().(*stream) }

//export weirGoHead
func weirGoHead(context unsafe.Pointer, head *C.struct_weir_client_head) C.bool {
	s := streamOf(context)
	s.lock.Lock()
	defer s.lock.Unlock()
	s.begun, s.status = true, int(head.status)
	if head.headers != nil {
		s.headers = C.GoString(head.headers)
	}
	close(s.head)
	return true
}

//export weirGoBody
func weirGoBody(context, data unsafe.Pointer, size C.size_t) C.bool {
	s := streamOf(context)
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed {
		return false
	}
	if s.read > 0 && s.read >= len(s.buffer)/2 { // a reader that never catches up: what it has read goes
		s.buffer = s.buffer[:copy(s.buffer, s.buffer[s.read:])]
		s.read = 0
	}
	s.buffer = append(s.buffer, unsafe.Slice((*byte)(data), int(size))...)
	s.changed.Signal()
	return true
}

//export weirGoDone
func weirGoDone(context unsafe.Pointer, answer *C.struct_weir_client_answer) {
	s := streamOf(context)
	one := &ended{outcome: Outcome(answer.outcome), status: int(answer.status), tries: int(answer.tries),
		retryAfter: time.Duration(signed(answer.retry_after_ns)), reason: C.GoString(&answer.reason.text[0])}
	if answer.headers != nil {
		one.headers = C.GoString(answer.headers)
	}
	if answer.body != nil {
		one.body = append(one.body, unsafe.Slice((*byte)(unsafe.Pointer(answer.body)), int(answer.body_size))...)
	}
	cgo.Handle(uintptr(context)).Delete() // nothing is called after this
	s.lock.Lock()
	defer s.lock.Unlock()
	s.done = one
	if !s.begun {
		close(s.head)
	}
	close(s.end)
	s.changed.Broadcast()
}

// Read returns what has come, and waits only where nothing has.
func (s *stream) Read(p []byte) (int, error) {
	s.lock.Lock()
	for s.read == len(s.buffer) && s.done == nil && !s.closed {
		s.changed.Wait()
	}
	if s.closed {
		s.lock.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	n := copy(p, s.buffer[s.read:])
	s.read += n
	s.consumed += n
	report, over := 0, s.read == len(s.buffer)
	if over {
		s.buffer, s.read = s.buffer[:0], 0
	}
	if over || s.consumed >= consumedMin {
		report, s.consumed = s.consumed, 0
	}
	done := s.done
	s.lock.Unlock()
	if done == nil {
		s.report(report)
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, s.failure(done)
}

// How a body ends: io.EOF, or why it broke off.
func (s *stream) failure(done *ended) error {
	if done.outcome == Outcome(C.WEIR_CLIENT_ANSWERED) {
		return io.EOF
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return &Failed{done.outcome, done.reason, done.tries, done.retryAfter}
}

// Reports that bytes were read, so that a paused transfer continues. Without memory the stream ends.
func (s *stream) report(bytes int) {
	s.client.lock.RLock()
	defer s.client.lock.RUnlock()
	if bytes > 0 && s.client.client != nil && C.weir_client_consumed(s.client.client, s.id, C.uint64_t(bytes)) < 0 {
		C.weir_client_cancel(s.client.client, s.id)
	}
}

// Close ends the transfer.
func (s *stream) Close() error {
	s.lock.Lock()
	open := !s.closed && s.done == nil
	s.closed, s.buffer, s.read = true, nil, 0
	s.changed.Broadcast()
	s.lock.Unlock()
	if open {
		s.client.cancel(s.id)
	}
	return nil
}

// The end of the request's context ends the body.
func (s *stream) watch() {
	select {
	case <-s.ctx.Done():
		s.client.cancel(s.id)
	case <-s.end:
	}
}

func lines(r *http.Request) []string {
	var found []string
	for name, values := range r.Header {
		for _, value := range values {
			if !own[name] {
				found = append(found, name+": "+value)
			}
		}
	}
	if r.Host != "" && r.Host != r.URL.Host {
		found = append(found, "Host: "+r.Host)
	}
	return found
}

// The body, closed; nil: none.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if closing := r.Body.Close(); err == nil {
		err = closing
	}
	return body, err
}

// Memory of C for one request, freed at once after submission, which copies.
type texts struct{ all []unsafe.Pointer }

func (t *texts) copy(text string) *C.char {
	copied := C.CString(text)
	t.all = append(t.all, unsafe.Pointer(copied))
	return copied
}

func (t *texts) free() {
	for _, each := range t.all {
		C.free(each)
	}
}

func (t *transport) submit(r *http.Request, body []byte, handle cgo.Handle) (C.uint64_t, error) {
	headers := lines(r)
	if len(headers) > headersMax {
		return 0, fmt.Errorf("more than %d header fields", headersMax)
	}
	var memory texts
	defer memory.free()
	given := (*C.struct_weir_client_request)(C.calloc(1, C.sizeof_struct_weir_client_request))
	list := (*[headersMax]*C.char)(C.calloc(headersMax, C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	memory.all = append(memory.all, unsafe.Pointer(given), unsafe.Pointer(list))
	for i, line := range headers {
		list[i] = memory.copy(line)
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	url := *r.URL
	url.User, url.Fragment = nil, "" // http.Client has made a field of the user
	given.url, given.method = memory.copy(url.String()), memory.copy(method)
	given.headers, given.header_count = &list[0], C.size_t(len(headers))
	if len(body) > 0 {
		given.body, given.body_size = C.CBytes(body), C.size_t(len(body))
		memory.all = append(memory.all, unsafe.Pointer(given.body))
	}
	given.idempotency_key, given.priority = C.bool(t.options.IdempotencyKey), C.int(t.options.Priority)
	given.tries, given.body_window = C.uint32_t(t.options.Tries), window
	if err := nanoseconds("Time", t.options.Time, &given.time_ns); err != nil {
		return 0, err
	}
	if t.options.Scope != "" {
		given.scope = memory.copy(t.options.Scope)
	}
	t.client.lock.RLock()
	defer t.client.lock.RUnlock()
	if t.client.client == nil {
		return 0, errClosed
	}
	var id C.uint64_t
	if err := C.weir_go_submit(t.client.client, given, C.uintptr_t(handle), &id); err < 0 {
		return 0, failure(err, "")
	}
	return id, nil
}

func (c *Client) cancel(id C.uint64_t) {
	c.lock.RLock()
	defer c.lock.RUnlock()
	if c.client != nil {
		C.weir_client_cancel(c.client, id)
	}
}

// RoundTrip makes one request with all its tries.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	if err = r.Context().Err(); err != nil {
		return nil, err
	}
	s := newStream(t.client, r.Context())
	handle := cgo.NewHandle(s) // weirGoDone deletes it
	s.id, err = t.submit(r, body, handle)
	if err != nil {
		handle.Delete()
		return nil, err
	}
	select {
	case <-s.head:
	case <-r.Context().Done():
		t.client.cancel(s.id)
		return nil, r.Context().Err()
	}
	if !s.begun {
		return lastAnswer(r, s.done)
	}
	if r.Context().Done() != nil {
		go s.watch()
	}
	return response(r, s.status, s.headers, s), nil
}

// The last answer of a request that was refused or failed.
func lastAnswer(r *http.Request, one *ended) (*http.Response, error) {
	if one.status == 0 || one.outcome == TimedOut {
		return nil, &Failed{one.outcome, one.reason, one.tries, one.retryAfter}
	}
	answer := response(r, one.status, one.headers, io.NopCloser(bytes.NewReader(one.body)))
	if r.Method != http.MethodHead {
		answer.ContentLength = int64(len(one.body))
	}
	return answer, nil
}

func response(r *http.Request, status int, headers string, body io.ReadCloser) *http.Response {
	header := http.Header{}
	for _, line := range strings.Split(headers, "\n") {
		if name, value, found := strings.Cut(line, ": "); found {
			header.Add(name, value)
		}
	}
	header.Del("Transfer-Encoding")
	header.Del("Connection")
	length, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	if err != nil || length < 0 {
		length = -1
	}
	return &http.Response{Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: body, ContentLength: length, Request: r}
}
