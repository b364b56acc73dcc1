// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Answers by path; seen has what was asked for.
type server struct {
	*httptest.Server
	lock sync.Mutex
	seen []string
	held chan struct{} // a request to /held has come
	got  chan struct{} // the reader has the head, or a part
	gone chan struct{} // and it has left
}

const large = 8 << 20

var parts = []string{"data: one\n\n", "data: two\n\n", "data: [DONE]\n\n"}

// Sends each part when the reader has got the one before; /cut ends, and /open stays open, after the first.
func (s *server) events(rw http.ResponseWriter, r *http.Request) {
	for _, part := range parts {
		rw.(http.Flusher).Flush()
		<-s.got
		fmt.Fprint(rw, part)
		if r.URL.Path == "/open" {
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
			s.gone <- struct{}{}
			return
		}
		if r.URL.Path == "/cut" {
			rw.(http.Flusher).Flush()
			<-s.got
			panic(http.ErrAbortHandler)
		}
	}
}

func serve(t *testing.T) *server {
	s := &server{held: make(chan struct{}, 1), got: make(chan struct{}, 8), gone: make(chan struct{}, 1)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.lock.Lock()
	s.seen = append(s.seen, fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, r.Host, body))
	count := len(s.seen)
	s.lock.Unlock()
	rw.Header().Set("RateLimit-Policy", `"a";q=1000;w=60`)
	rw.Header().Set("RateLimit", `"a";r=999;t=60`)
	switch {
	case r.URL.Path == "/limited" || (r.URL.Path == "/once" && count == 1):
		rw.Header().Set("Retry-After-Ms", "20")
		rw.WriteHeader(http.StatusTooManyRequests)
	case r.URL.Path == "/timeout" && count < 3:
		rw.WriteHeader(http.StatusRequestTimeout)
	case r.URL.Path == "/moved":
		http.Redirect(rw, r, "/there", http.StatusTemporaryRedirect)
	case r.URL.Path == "/events" || r.URL.Path == "/cut" || r.URL.Path == "/open":
		s.events(rw, r)
	case r.URL.Path == "/large":
		_, _ = rw.Write(make([]byte, large))
	case r.URL.Path == "/held":
		s.held <- struct{}{}
		<-r.Context().Done()
	default:
		rw.Header()["X-Two"] = []string{"1", "2"}
		fmt.Fprintf(rw, "got %s %s", body, r.Header.Get("X-One"))
	}
}

func (s *server) count() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.seen)
}

func opened(t *testing.T, options *Options) *Client {
	t.Helper()
	c, err := Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func is(t *testing.T, got, want any) {
	t.Helper()
	if got != want {
		t.Fatalf("%v, not %v", got, want)
	}
}

func text(t *testing.T, response *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	is(t, response.Body.Close(), nil)
	return string(body)
}

func TestRequestsAndAnswersPassUnchanged(t *testing.T) {
	s, c := serve(t), opened(t, nil)
	web := &http.Client{Transport: c.Transport(nil)}
	request, _ := http.NewRequest("POST", s.URL+"/moved", strings.NewReader("body"))
	request.Header.Set("X-One", "1")
	request.Host = "other.example"
	answer, err := web.Do(request)
	is(t, text(t, answer, err), "got body 1")
	is(t, answer.StatusCode, 200)
	is(t, answer.Status, "200 OK")
	is(t, answer.Request.URL.Path, "/there")
	is(t, strings.Join(answer.Header.Values("x-two"), ","), "1,2")
	is(t, answer.ContentLength, int64(10))
	s.lock.Lock()
	first := s.seen[0]
	s.lock.Unlock()
	is(t, first, "POST /moved other.example body")
	answer, err = web.Head(s.URL + "/")
	is(t, text(t, answer, err), "")
	limit, known := c.Known(s.URL, "")
	is(t, known, true)
	is(t, limit.Limit, int64(1000))
	is(t, limit.Remaining <= 999 && limit.Reset > 0, true)
	_, known = c.Known(s.URL, "other")
	is(t, known, false)
	c.Expect(10)
}

func TestA429IsWaitedOutAndTheLastOneIsTheAnswer(t *testing.T) {
	s, c := serve(t), opened(t, &Options{Tries: 3})
	web := &http.Client{Transport: c.Transport(nil)}
	answer, err := web.Get(s.URL + "/once")
	is(t, text(t, answer, err), "got  ")
	is(t, s.count(), 2)
	answer, err = web.Get(s.URL + "/limited")
	is(t, text(t, answer, err), "")
	is(t, answer.StatusCode, 429)
	is(t, s.count(), 5)
	keyed := &http.Client{Transport: c.Transport(&RequestOptions{IdempotencyKey: true, Tries: 2})}
	answer, err = keyed.Post(s.URL+"/limited", "text/plain", strings.NewReader("x"))
	is(t, text(t, answer, err), "")
	is(t, s.count(), 7)
}

func TestStatusesThatAreRetriedToo(t *testing.T) {
	s := serve(t)
	c := opened(t, &Options{RetryOn: []int{409, 408}, BackoffBase: time.Millisecond})
	answer, err := (&http.Client{Transport: c.Transport(nil)}).Get(s.URL + "/timeout")
	is(t, text(t, answer, err), "got  ")
	is(t, s.count(), 3)
	for _, wrong := range []*Options{{RetryOn: []int{200}}, {RetryOn: make([]int, 17)}, {RetryStatuses: []int{200}},
		{BackoffFactor: 0.5}, {Rate: "ten"}, {Concurrency: 1001}, {Time: -1},
		{State: "/no/such/folder/limits"}} {
		if _, err := Open(wrong); err == nil {
			t.Fatal(wrong)
		}
	}
}

func TestStatusesThatAreAllThatIsRetried(t *testing.T) {
	s := serve(t)
	c := opened(t, &Options{RetryStatuses: []int{503}, BackoffBase: time.Millisecond, BackoffFactor: 1.5, Jitter: NoJitter})
	answer, err := (&http.Client{Transport: c.Transport(nil)}).Get(s.URL + "/timeout")
	is(t, err, nil)
	is(t, answer.StatusCode, 408)
	is(t, answer.Body.Close(), nil)
	is(t, s.count(), 1)
}

func TestARateOfTheCallersOwn(t *testing.T) {
	s := serve(t)
	c := opened(t, &Options{Rate: "1/h burst 2", Time: 10 * time.Minute})
	for i := 0; i < 5; i++ {
		answer, err := (&http.Client{Transport: c.Transport(nil)}).Get(s.URL + "/")
		if i < 2 {
			is(t, err, nil)
			is(t, answer.Body.Close(), nil)
			continue
		}
		var failed *Failed
		is(t, errors.As(err, &failed) && failed.Outcome == Limited, true)
	}
	is(t, s.count(), 2)
	known, ok := c.Known(s.URL, "")
	is(t, ok && known.Interval == time.Hour, true)
	waits := opened(t, &Options{Rate: "50/s"})
	for i := 0; i < 5; i++ {
		answer, err := (&http.Client{Transport: waits.Transport(nil)}).Get(s.URL + "/")
		is(t, err, nil)
		is(t, answer.Body.Close(), nil)
	}
	is(t, s.count(), 7)
}

func TestFailuresSayWhatIsKnown(t *testing.T) {
	s, c := serve(t), opened(t, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	is(t, err, nil)
	is(t, listener.Close(), nil)
	var failed *Failed
	_, err = (&http.Client{Transport: c.Transport(&RequestOptions{Tries: 1})}).Get("http://" + listener.Addr().String())
	is(t, errors.As(err, &failed), true)
	is(t, failed.Outcome, GaveUp)
	is(t, failed.Tries, 1)
	slow := &http.Client{Transport: c.Transport(&RequestOptions{Time: time.Second, Scope: "other"})}
	_, err = slow.Get(s.URL + "/held")
	is(t, errors.As(err, &failed), true)
	is(t, failed.Outcome, TimedOut)
	_, err = (&http.Client{Transport: c.Transport(nil)}).Get("ftp://host/")
	is(t, err != nil, true)
	_, err = (&http.Client{Transport: c.Transport(&RequestOptions{Time: -time.Second})}).Get(s.URL + "/")
	is(t, err != nil && strings.Contains(err.Error(), "Time: is negative"), true)
	request, _ := http.NewRequest("GET", s.URL, nil)
	for i := 0; i <= headersMax; i++ {
		request.Header.Set(fmt.Sprintf("X-%d", i), "a")
	}
	_, err = c.Transport(nil).RoundTrip(request)
	is(t, err != nil, true)
}

func TestAContextEndsARequest(t *testing.T) {
	s, c := serve(t), opened(t, &Options{Concurrency: 1})
	ctx, cancel := context.WithCancel(context.Background())
	request, _ := http.NewRequestWithContext(ctx, "GET", s.URL+"/held", nil)
	ended := make(chan error)
	go func() {
		_, err := c.Transport(nil).RoundTrip(request)
		ended <- err
	}()
	<-s.held
	cancel()
	is(t, <-ended, context.Canceled)
	_, err := c.Transport(nil).RoundTrip(request)
	is(t, err, context.Canceled)
	answer, err := (&http.Client{Transport: c.Transport(nil)}).Get(s.URL + "/") // the place is free
	is(t, text(t, answer, err), "got  ")
}

func TestClosingCancelsWhatIsLeft(t *testing.T) {
	s, c := serve(t), opened(t, nil)
	request, _ := http.NewRequest("GET", s.URL+"/held", nil)
	ended := make(chan error)
	go func() {
		_, err := c.Transport(nil).RoundTrip(request)
		ended <- err
	}()
	<-s.held
	c.Close()
	var failed *Failed
	is(t, errors.As(<-ended, &failed), true)
	is(t, failed.Outcome, Cancelled)
	_, err := c.Transport(nil).RoundTrip(request)
	is(t, err, errClosed)
	c.Close()
}

func TestManyGoroutinesAndClientsThatShare(t *testing.T) {
	s := serve(t)
	state := filepath.Join(t.TempDir(), "limits")
	c := opened(t, &Options{State: state})
	c.Expect(100)
	web := &http.Client{Transport: c.Transport(nil)}
	var all sync.WaitGroup
	failures := make(chan error, 100)
	for i := 0; i < 100; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			answer, err := web.Get(fmt.Sprintf("%s/%d", s.URL, i))
			if err == nil && answer.StatusCode != 200 {
				err = fmt.Errorf("%d", answer.StatusCode)
			}
			failures <- err
		}(i)
	}
	all.Wait()
	for i := 0; i < 100; i++ {
		is(t, <-failures, nil)
	}
	limit, known := opened(t, &Options{State: state}).Known(s.URL, "")
	is(t, known, true)
	is(t, limit.Limit, int64(1000))
}

// What arrives by one Read each, until an error.
func (s *server) arrives(body io.Reader) (string, error) {
	var found strings.Builder
	piece := make([]byte, 100)
	for {
		s.got <- struct{}{}
		n, err := body.Read(piece)
		found.Write(piece[:n])
		if err != nil {
			return found.String(), err
		}
	}
}

func (c *Client) get(t *testing.T, ctx context.Context, url string) *http.Response {
	t.Helper()
	request, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
	answer, err := (&http.Client{Transport: c.Transport(nil)}).Do(request)
	is(t, err, nil)
	return answer
}

func TestEventsArriveAsTheyAreSent(t *testing.T) {
	s, c := serve(t), opened(t, nil)
	answer := c.get(t, context.Background(), s.URL+"/events")
	is(t, answer.ContentLength, int64(-1))
	got, err := s.arrives(answer.Body)
	is(t, err, io.EOF)
	is(t, got, strings.Join(parts, ""))
	is(t, answer.Body.Close(), nil)
	is(t, s.count(), 1)
}

func TestAnAnswerThatBreaksOffIsNotTriedAgain(t *testing.T) {
	s, c := serve(t), opened(t, nil)
	got, err := s.arrives(c.get(t, context.Background(), s.URL+"/cut").Body)
	var failed *Failed
	is(t, errors.As(err, &failed), true)
	is(t, failed.Outcome, GaveUp)
	is(t, got, parts[0])
	is(t, s.count(), 1)
}

func TestALargeBodyArrivesWhole(t *testing.T) {
	s, c := serve(t), opened(t, nil)
	answer := c.get(t, context.Background(), s.URL+"/large")
	size, err := io.Copy(io.Discard, answer.Body)
	is(t, err, nil)
	is(t, size, int64(large))
	most := c.get(t, context.Background(), s.URL+"/large").Body.(*stream)
	piece := make([]byte, 997)
	for i := 0; i < large/2/len(piece); i++ {
		_, err := io.ReadFull(most, piece)
		is(t, err, nil)
		most.lock.Lock()
		for len(most.buffer)-most.read < window/8 && most.done == nil { // the reader never catches up
			most.changed.Wait()
		}
		unread, room := len(most.buffer)-most.read, cap(most.buffer)
		most.lock.Unlock()
		is(t, unread <= window+16384, true)
		is(t, room <= 4*(window+16384), true)
	}
	is(t, most.Close(), nil)
	_, err = most.Read(piece)
	is(t, err, http.ErrBodyReadAfterClose)
}

func TestWhoLeavesEndsTheTransfer(t *testing.T) {
	s, c := serve(t), opened(t, nil)
	piece := make([]byte, 100)
	for _, leave := range []func(io.Closer, func()){
		func(body io.Closer, _ func()) { is(t, body.Close(), nil) },
		func(_ io.Closer, cancel func()) { cancel() },
		func(io.Closer, func()) { c.Close() },
	} {
		ctx, cancel := context.WithCancel(context.Background())
		body := c.get(t, ctx, s.URL+"/open").Body
		s.got <- struct{}{}
		n, err := body.Read(piece)
		is(t, err, nil)
		is(t, string(piece[:n]), parts[0])
		leave(body, cancel)
		<-s.gone
		_, err = body.Read(piece)
		is(t, err != nil && err != io.EOF, true)
		cancel()
	}
}
