// SPDX-License-Identifier: Apache-2.0

// Package weir limits rates within a Go process, exact over all processes that share a state file. It is a
// thin layer over libweir and decides nothing itself. The guide is docs/languages/go.md.
//
// A Weir may be used by any number of goroutines. Times are time.Duration; Never is no end.
package weir

/*
#cgo pkg-config: weir
#include <stdlib.h>
#include <string.h>
#include <weir/embed.h>

// One call: memory of C, which holds pointers into itself only.
struct weir_go_call {
    struct weir_call call;
    struct weir_value values[WEIR_HANDLES_MAX + 8];
    struct weir_answer_summary answer;
    struct weir_limit_answer limits[WEIR_LIMITS_MAX];
    struct weir_reservation_token reservation;
    char fields[WEIR_FIELDS_MAX], body[WEIR_BODY_MAX];
    char *bytes;
    size_t room;
};

static int weir_go_check(struct weir *weir, struct weir_go_call *c)
{
    c->call.values = c->values;
    c->call.fields = c->fields;
    c->call.body = c->body;
    c->call.limits = c->limits;
    c->call.reservation = &c->reservation;
    return weir_check_full(weir, &c->call, &c->answer);
}

static int weir_go_outcome(struct weir *weir, struct weir_go_call *c, unsigned status)
{
    c->call.values = c->values;
    return weir_outcome(weir, &c->call, status);
}

// Exported by log.go.
extern void weirGoSay(uintptr_t sink, int level, char *text);

static void weir_go_say(void *context, enum weir_say level, const char *text)
{
    weirGoSay((uintptr_t)context, (int)level, (char *)text);
}

static void weir_go_listen(struct weir_options *options, uintptr_t sink)
{
    options->say = weir_go_say;
    options->say_context = (void *)sink;
}

static void weir_go_free(struct weir_go_call *c)
{
    free(c->bytes);
    free(c);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Never is the wait of a request that no wait would admit.
const Never = time.Duration(math.MaxInt64)

const (
	bytesMax             = 16 << 20 // of all values of a request
	statusMin, statusMax = 100, 599
)

// Error is an error of libweir: a code (Syntax, …) and what is wrong.
type Error struct {
	Code int
	Text string
}

func (e *Error) Error() string { return e.Text }

// Codes that a program may have to tell apart.
const (
	Range       = int(C.WEIR_ERR_RANGE)
	Syntax      = int(C.WEIR_ERR_SYNTAX)
	TooLarge    = int(C.WEIR_ERR_TOO_LARGE)
	Busy        = int(C.WEIR_ERR_BUSY)
	NotFound    = int(C.WEIR_ERR_NOT_FOUND)
	Rules       = int(C.WEIR_ERR_RULES)
	Unsupported = int(C.WEIR_ERR_UNSUPPORTED)
)

func failure(code C.int, reason string) error {
	if code >= 0 {
		return nil
	}
	if reason == "" {
		reason = C.GoString(C.weir_error_text(code))
	}
	return &Error{int(code), reason}
}

// Options of Open; zero is the default everywhere.
type Options struct {
	State         string        // the state file that processes share
	StateBytes    uint64        // 0: 64 MiB
	StateGroup    string        // of a state file that is made
	StateMode     uint32        // bits of 0666
	StatePatience time.Duration // how long a check waits for a process that is stopped; 0: 100 ms
	Threads       uint          // that check at the same time; 0: one for each processor
	// StateMustOpen makes a state file that cannot be opened an error of Open. Else on_store_error of the limits decides,
	// and weir tries again each second.
	StateMustOpen bool
	// Log gets each line that an operator has to know, one after the other. Nil: the package log, with "weir: ".
	Log func(level Level, text string)
	// TestClock is for tests: the clock begins then, stands still, and moves by Advance only. The state is private
	// memory, also where the rules name a file. Zero: the kernel's clock.
	TestClock time.Time
}

// Weir is an open rules file.
type Weir struct {
	weir  *C.struct_weir
	rules C.enum_weir_on_store_error // what they said when it was opened
	names atomic.Pointer[attributes]
	calls sync.Pool
	lock  sync.RWMutex // held for writing by Close
	// Handles of attributes that were given and that no rule reads: libweir counts names that it does not know.
	unread      sync.Map
	unreadCount atomic.Int32
	known       texts // names of fields and limits, which answers repeat
	done        chan struct{}
	sink        *sink
}

// What the present rules read.
type attributes struct {
	handles                    map[string]C.int
	headers                    []header
	method, path, host, client C.int
	refunds                    bool
	strikes                    [statusMax + 1]bool // by status: an outcome that is a strike of a penalty
	anyStrike                  bool
}

type header struct {
	name   string
	handle C.int
}

// Whether a request passes that an error of this code left undecided, by what the rules say.
func (w *Weir) passes(code int) bool {
	return bool(C.weir_passes(C.int(code), w.rules, false))
}

var errClosed = errors.New("weir is closed")

// Open opens a rules file. `options` may be nil.
func Open(rules string, options *Options) (*Weir, error) {
	if options == nil {
		options = &Options{}
	}
	if options.StatePatience < 0 {
		return nil, failure(C.WEIR_ERR_RANGE, "StatePatience: is negative")
	}
	var given C.struct_weir_options
	texts := [3]*C.char{C.CString(rules), C.CString(options.State), C.CString(options.StateGroup)}
	for _, text := range texts {
		defer C.free(unsafe.Pointer(text))
	}
	if options.State != "" {
		given.state_file = texts[1]
	}
	if options.StateGroup != "" {
		given.state_group = texts[2]
	}
	given.state_bytes = C.uint64_t(options.StateBytes)
	given.state_mode = C.uint(options.StateMode)
	given.state_patience_ns = C.uint64_t(options.StatePatience)
	given.threads = C.uint(options.Threads)
	given.leases_end_with_process = true
	given.state_must_open = C.bool(options.StateMustOpen)
	if !options.TestClock.IsZero() {
		if options.TestClock.Unix() <= 0 {
			return nil, failure(C.WEIR_ERR_RANGE, "TestClock: is before 1970")
		}
		given.test_clock_ns = C.uint64_t(options.TestClock.UnixNano())
	}
	w := &Weir{done: make(chan struct{}), sink: newSink(options.Log)}
	C.weir_go_listen(&given, C.uintptr_t(w.sink.handle))
	var reason C.struct_weir_reason
	if err := C.weir_open(&w.weir, texts[0], &given, &reason); err < 0 {
		w.sink.close()
		return nil, failure(err, C.GoString(&reason.text[0]))
	}
	w.rules = C.weir_rules_on_store_error(texts[0])
	w.calls.New = func() any {
		call := (*C.struct_weir_go_call)(C.calloc(1, C.sizeof_struct_weir_go_call))
		holder := &callHolder{call}
		runtime.SetFinalizer(holder, func(h *callHolder) { C.weir_go_free(h.call) })
		return holder
	}
	if err := w.learn(); err != nil {
		C.weir_close(w.weir)
		w.sink.close()
		return nil, err
	}
	w.sink.flush()
	go w.tend()
	return w, nil
}

type callHolder struct{ call *C.struct_weir_go_call }

func (w *Weir) learn() error {
	names := &attributes{handles: map[string]C.int{}, refunds: bool(C.weir_gives_back(w.weir))}
	for name, handle := range map[string]*C.int{"method": &names.method, "path": &names.path, "host": &names.host,
		"client.ip": &names.client} {
		text := C.CString(name)
		*handle = C.weir_attribute(w.weir, text)
		C.free(unsafe.Pointer(text))
		if *handle < 0 {
			return failure(*handle, "")
		}
	}
	for i := C.int(0); ; i++ {
		text := C.weir_attribute_name(w.weir, i)
		if text == nil {
			break
		}
		if !C.weir_attribute_is_read(w.weir, i) {
			continue
		}
		name := C.GoString(text)
		names.handles[name] = i
		if strings.HasPrefix(name, "header.") {
			names.headers = append(names.headers, header{http.CanonicalHeaderKey(name[len("header."):]), i})
		}
	}
	host := C.CString("header.host") // another name of `host`
	names.handles["header.host"] = C.weir_attribute(w.weir, host)
	C.free(unsafe.Pointer(host))
	for status := statusMin; status <= statusMax; status++ {
		if C.weir_is_strike(w.weir, C.uint(status)) {
			names.strikes[status], names.anyStrike = true, true
		}
	}
	w.names.Store(names)
	return nil
}

// Ends the leases of processes that have died.
func (w *Weir) tend() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-w.done:
			return
		case one := <-w.sink.lines:
			w.sink.log(one.level, one.text)
		case <-ticker.C:
			_ = w.with(func() C.int { C.weir_tend(w.weir); return 0 })
		}
	}
}

// Runs a call unless the weir is closed.
func (w *Weir) with(call func() C.int) error {
	w.lock.RLock()
	defer w.lock.RUnlock()
	if w.weir == nil {
		return errClosed
	}
	return failure(call(), "")
}

// Close ends; what is in a state file stays.
func (w *Weir) Close() {
	w.lock.Lock()
	open := w.weir
	w.weir = nil
	if open != nil {
		close(w.done)
		C.weir_close(open)
	}
	w.lock.Unlock()
	if open != nil {
		w.sink.close()
	}
}

// StateError is why the state file cannot be opened, so that on_store_error decides; nil: it is open.
func (w *Weir) StateError() error {
	w.lock.RLock()
	defer w.lock.RUnlock()
	if w.weir == nil {
		return errClosed
	}
	var reason C.struct_weir_reason
	err := C.weir_state_check(w.weir, &reason)
	return failure(err, C.GoString(&reason.text[0]))
}

// Reload reads the rules file again; the old rules stay when it has errors.
func (w *Weir) Reload() error {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.weir == nil {
		return errClosed
	}
	var reason C.struct_weir_reason
	if err := C.weir_reload(w.weir, &reason); err < 0 {
		return failure(err, C.GoString(&reason.text[0]))
	}
	return w.learn()
}

// Refunds is whether some limit gives back by outcome (`refund_on`).
func (w *Weir) Refunds() bool { return w.names.Load().refunds }

// IsStrike is whether an outcome with this status is a strike of some penalty (`outcomes`), so that Outcome is
// worth it.
func (w *Weir) IsStrike(status int) bool {
	return status >= statusMin && status <= statusMax && w.names.Load().strikes[status]
}

// Request is what a check is about; a nil pointer is an absent value.
type Request struct {
	Method, Path, Host, IP  string            // "": absent
	ForwardedFor, Forwarded *string           // as they arrived: they count if IP is a trusted proxy
	Headers                 map[string]string // names in any case; nil: unknown
	lines                   http.Header       // of a request of net/http: in place of Headers
	Attributes              map[string]string // any other that the rules read
	Cost                    uint64            // 0: 1, unless Free
	Free                    bool              // asks whether a limit is used up
	DryRun                  bool              // decides, and charges nothing
	IdempotencyKey          string
	Untrusted               bool // header fields may not say a class of priority
	Reserve                 bool // to be settled within Life
	ReserveDelayed          bool // to be cancelled while it waits
	Life                    time.Duration
}

// Limit is what one limit says.
type Limit struct {
	Name                                           string
	Allowed, Shadow, Unlimited, Borrowed, Overflow bool
	Limit, Remaining, Cost                         uint64
	RetryAfter, ResetAfter, Window                 time.Duration
	concurrency                                    bool
}

// Answer is what weir says of one request.
type Answer struct {
	Allowed               bool
	Status                int
	DeniedBy              string // the limit's name, "standing", or ""
	RetryAfter            time.Duration
	Delay                 time.Duration // how long to hold the request, or its denial
	Remaining             uint64
	StoreFailed, Repeated bool
	Action, Standing      string
	Fields                [][2]string // header fields: name and value
	Type, Body            string      // of a denial
	Lease                 string
	Reservation           *Reservation
	Limits                []Limit
}

// Reservation is what Settle, Report and Cancel take.
type Reservation struct {
	token C.struct_weir_reservation_token
}

func (r *Reservation) String() string { return C.GoString(&r.token.text[0]) }

func duration(ns C.uint64_t) time.Duration {
	if uint64(ns) > uint64(Never) {
		return Never
	}
	return time.Duration(ns)
}

// Copies values into the memory of one call.
type filling struct {
	call *C.struct_weir_go_call
	size C.size_t
	full bool // there are more values than a call has room for
}

func (f *filling) copy(text string) (*C.char, C.size_t) {
	at, size := f.size, C.size_t(len(text))
	// Room was made for all before, since pointers into it must not move.
	if size > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(f.call.bytes), at)), size), text)
	}
	f.size += size
	return (*C.char)(unsafe.Add(unsafe.Pointer(f.call.bytes), at)), size
}

func (f *filling) add(handle C.int, text string) {
	count := f.call.call.count
	if int(count) >= len(f.call.values) {
		f.full = true
		return
	}
	value := &f.call.values[count]
	value.attribute = handle
	value.data, value.size = f.copy(text)
	f.call.call.count++
}

func sizeOf(r *Request, headers []header) int {
	size := 1 + len(r.Method) + len(r.Path) + len(r.Host) + len(r.IP) + len(r.IdempotencyKey)
	for _, text := range []*string{r.ForwardedFor, r.Forwarded} {
		if text != nil {
			size += len(*text)
		}
	}
	for _, values := range []map[string]string{r.Headers, r.Attributes} {
		for _, value := range values {
			size += len(value)
		}
	}
	for _, one := range headers {
		for _, line := range r.lines[one.name] {
			size += len(line)
		}
	}
	return size
}

// The handle of an attribute that no rule reads; false: it has none. Names of fields, of which a client may send any
// number, have none.
func (w *Weir) unreadHandle(name string) (C.int, bool) {
	for _, family := range []string{"header.", "query.", "cookie."} {
		if strings.HasPrefix(name, family) {
			return 0, false
		}
	}
	if known, found := w.unread.Load(name); found {
		return known.(C.int), known.(C.int) >= 0
	}
	if w.unreadCount.Add(1) > C.WEIR_HANDLES_MAX {
		w.unreadCount.Add(-1)
		return 0, false
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	handle := C.weir_attribute(w.weir, text)
	w.unread.Store(name, handle)
	return handle, handle >= 0
}

func (w *Weir) fill(call *C.struct_weir_go_call, r *Request) error {
	names := w.names.Load()
	size := sizeOf(r, names.headers)
	if call == nil {
		return failure(C.WEIR_ERR_MEMORY, "")
	}
	if size > bytesMax {
		return failure(C.WEIR_ERR_TOO_LARGE, "")
	}
	if C.size_t(size) > call.room {
		bytes := C.realloc(unsafe.Pointer(call.bytes), C.size_t(2*size))
		if bytes == nil {
			return failure(C.WEIR_ERR_MEMORY, "")
		}
		call.bytes, call.room = (*C.char)(bytes), C.size_t(2*size)
	}
	call.call = C.struct_weir_call{cost: C.uint64_t(r.Cost), peek: C.bool(r.DryRun), untrusted: C.bool(r.Untrusted),
		reserve_life_ns: C.uint64_t(r.Life)}
	if r.Cost == 0 && !r.Free {
		call.call.cost = 1
	}
	if r.Reserve {
		call.call.reserve = C.WEIR_RESERVE_ALWAYS
	} else if r.ReserveDelayed && !r.Free {
		call.call.reserve = C.WEIR_RESERVE_DELAYED
	}
	f := filling{call: call}
	for _, one := range []struct {
		handle C.int
		text   string
	}{{names.method, r.Method}, {names.path, r.Path}, {names.host, r.Host}, {names.client, r.IP}} {
		if one.text != "" {
			f.add(one.handle, one.text)
		}
	}
	if (r.Headers != nil || r.lines != nil) && len(names.headers) > 0 {
		absent := C.WEIR_OF_REQUEST + names.headers[0].handle // as are all that are not given
		call.values[call.call.count] = C.struct_weir_value{attribute: absent}
		call.call.count++
	}
	for name, value := range r.Headers {
		if handle, read := names.handles["header."+strings.ToLower(name)]; read {
			f.add(C.WEIR_OF_REQUEST+handle, value)
		}
	}
	for _, one := range names.headers {
		for _, line := range r.lines[one.name] {
			f.add(C.WEIR_OF_REQUEST+one.handle, line)
		}
	}
	for name, value := range r.Attributes {
		handle, known := names.handles[name]
		if !known && len(name) > 7 && strings.EqualFold(name[:7], "header.") { // fields have names of any case
			handle, known = names.handles[strings.ToLower(name)]
		} else if !known {
			handle, known = w.unreadHandle(name)
		}
		if known {
			f.add(handle, value)
		}
	}
	if r.ForwardedFor != nil {
		call.call.forwarded_for, call.call.forwarded_for_size = f.copy(*r.ForwardedFor)
	}
	if r.Forwarded != nil {
		call.call.forwarded, call.call.forwarded_size = f.copy(*r.Forwarded)
	}
	if r.IdempotencyKey != "" {
		call.call.idempotency_key, call.call.idempotency_size = f.copy(r.IdempotencyKey)
	}
	if f.full {
		return failure(C.WEIR_ERR_TOO_LARGE, "")
	}
	return nil
}

const (
	textsMax  = 256 // names that are kept: those of fields and limits, and of the limits of former rules
	fieldsFew = 6   // of one answer: more are allocated apart
	limitsFew = 2
)

// A text that answers repeat, and its form as the key of an http.Header.
type text struct{ text, key string }

// texts keeps those that have come, so that an answer copies none of them again. A map is never changed: another takes
// its place.
type texts struct {
	all  atomic.Pointer[map[string]text]
	lock sync.Mutex
}

// The text of bytes, which may be memory of C.
func (t *texts) of(bytes []byte) text {
	if len(bytes) == 0 {
		return text{}
	}
	if all := t.all.Load(); all != nil {
		if found, known := (*all)[string(bytes)]; known { // this copies nothing
			return found
		}
	}
	found := text{string(bytes), http.CanonicalHeaderKey(string(bytes))}
	t.lock.Lock()
	defer t.lock.Unlock()
	grown := map[string]text{found.text: found}
	if all := t.all.Load(); all != nil {
		if len(*all) >= textsMax {
			return found
		}
		for name, each := range *all {
			grown[name] = each
		}
	}
	t.all.Store(&grown)
	return found
}

// The name of a field as the key of an http.Header.
func (t *texts) key(name string) string {
	if all := t.all.Load(); all != nil {
		if found, known := (*all)[name]; known {
			return found.key
		}
	}
	return http.CanonicalHeaderKey(name)
}

// The bytes of a text of C with a NUL.
func bytesOf(text []C.char) []byte {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&text[0])), len(text))
	for i, one := range bytes {
		if one == 0 {
			return bytes[:i]
		}
	}
	return bytes
}

// An answer and what it refers to, in one piece of memory.
type block struct {
	Answer
	fields [fieldsFew][2]string
	limits [limitsFew]Limit
}

// The fields of an answer: their values are parts of one text.
func (w *Weir) readFields(call *C.struct_weir_go_call, a *Answer) {
	size := int(call.answer.fields_size)
	all := C.GoStringN(&call.fields[0], C.int(size))
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&call.fields[0])), size)
	for at := 0; at < size; {
		length := strings.Index(all[at:], "\r\n")
		if length < 0 {
			length = size - at
		}
		if colon := strings.Index(all[at:at+length], ": "); colon >= 0 {
			name := w.known.of(raw[at : at+colon])
			a.Fields = append(a.Fields, [2]string{name.text, all[at+colon+2 : at+length]})
		}
		at += length + 2
	}
}

func (w *Weir) read(call *C.struct_weir_go_call) *Answer {
	answer := &call.answer
	b := &block{Answer: Answer{Allowed: bool(answer.allowed), Status: int(answer.status),
		DeniedBy: w.known.of(bytesOf(answer.denied_by[:])).text, RetryAfter: duration(answer.retry_after_ns),
		Delay: duration(answer.delay_ns), Remaining: uint64(answer.remaining), StoreFailed: bool(answer.store_failed),
		Repeated: bool(answer.repeated), Standing: C.GoString(&answer.standing[0]),
		Lease: C.GoString(&answer.lease.text[0]), Type: w.known.of(bytesOf(answer._type[:])).text,
		Body: C.GoStringN(&call.body[0], C.int(answer.body_size))}}
	a := &b.Answer
	a.Fields, a.Limits = b.fields[:0], b.limits[:0]
	if answer.action != nil {
		a.Action = C.GoString(answer.action)
	}
	w.readFields(call, a)
	for i := range call.limits[:answer.limit_count] {
		one := &call.limits[i]
		a.Limits = append(a.Limits, Limit{Name: w.known.of(bytesOf(one.name[:])).text, Allowed: bool(one.allowed),
			Shadow: bool(one.shadow), Unlimited: bool(one.unlimited), Borrowed: bool(one.borrowed),
			Overflow: bool(one.overflow), Limit: uint64(one.report.limit), Remaining: uint64(one.report.remaining),
			Cost: uint64(one.cost), RetryAfter: duration(one.report.retry_after_ns),
			ResetAfter: duration(one.report.reset_after_ns), Window: duration(one.window_ns),
			concurrency: one.algorithm == C.WEIR_CONCURRENCY})
	}
	if call.reservation.text[0] != 0 {
		a.Reservation = &Reservation{call.reservation}
	}
	return a
}

// Check decides a request now. A denial is an answer, not an error. Errors are *Error: Syntax (a malformed path,
// host or address), TooLarge, Range.
func (w *Weir) Check(r *Request) (*Answer, error) {
	w.lock.RLock()
	defer w.lock.RUnlock()
	if w.weir == nil {
		return nil, errClosed
	}
	holder := w.calls.Get().(*callHolder)
	defer w.calls.Put(holder)
	if err := w.fill(holder.call, r); err != nil {
		return nil, err
	}
	if err := C.weir_go_check(w.weir, holder.call); err < 0 {
		return nil, failure(err, "")
	}
	answer := w.read(holder.call)
	runtime.KeepAlive(holder)
	return answer, nil
}

// Outcome: a request, given as to Check, ended with this status. It is a strike of each penalty that has the status
// in `outcomes`. Charges nothing. Errors: as Check; Range (the status).
func (w *Weir) Outcome(r *Request, status int) error {
	if status < statusMin || status > statusMax {
		return statusOutOfRange(status)
	}
	w.lock.RLock()
	defer w.lock.RUnlock()
	if w.weir == nil {
		return errClosed
	}
	holder := w.calls.Get().(*callHolder)
	defer w.calls.Put(holder)
	if err := w.fill(holder.call, r); err != nil {
		return err
	}
	err := C.weir_go_outcome(w.weir, holder.call, C.uint(status))
	runtime.KeepAlive(holder)
	return failure(err, "")
}

func statusOutOfRange(status int) error {
	return failure(C.WEIR_ERR_RANGE, fmt.Sprintf("status %d: not from %d to %d", status, statusMin, statusMax))
}

// Settle: the request has cost `cost` in truth.
func (w *Weir) Settle(r *Reservation, cost uint64) error {
	return w.with(func() C.int { return C.weir_settle(w.weir, &r.token, C.uint64_t(cost)) })
}

// Report: the request ended with this status; limits with `refund_on` give back.
func (w *Weir) Report(r *Reservation, status int) error {
	if status < statusMin || status > statusMax {
		return statusOutOfRange(status)
	}
	return w.with(func() C.int { return C.weir_report(w.weir, &r.token, C.uint(status)) })
}

// Cancel: the request did not happen.
func (w *Weir) Cancel(r *Reservation) error {
	return w.with(func() C.int { return C.weir_cancel(w.weir, &r.token) })
}

func (w *Weir) lease(text string, end bool) error {
	var token C.struct_weir_lease_token
	if len(text) >= len(token.text) {
		return failure(C.WEIR_ERR_SYNTAX, "")
	}
	for i := range []byte(text) {
		token.text[i] = C.char(text[i])
	}
	return w.with(func() C.int {
		if end {
			return C.weir_release(w.weir, &token)
		}
		return C.weir_renew(w.weir, &token)
	})
}

// Advance lets time pass for a Weir with a TestClock. Errors: Unsupported (it has none), Range.
func (w *Weir) Advance(d time.Duration) error {
	if d < 0 {
		return failure(C.WEIR_ERR_RANGE, "a clock does not go back")
	}
	return w.with(func() C.int { return C.weir_advance(w.weir, C.uint64_t(d)) })
}

// Release ends a lease.
func (w *Weir) Release(lease string) error { return w.lease(lease, true) }

// Renew lets a lease live for a whole life from now.
func (w *Weir) Renew(lease string) error { return w.lease(lease, false) }
