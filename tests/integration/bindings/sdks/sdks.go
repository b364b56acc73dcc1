// SPDX-License-Identifier: Apache-2.0

// SDKs as Go's module proxy has them, through the client for Go, against the API of test_client_sdks.py: each is
// refused once, and gets its answer. go run . ADDRESS
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/google/go-github/v66/github"
	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"weir.example/weir/client"
)

const said = "hello to you"

func expect(got string, err error) {
	if err != nil || got != said {
		log.Fatal(got, err)
	}
}

func main() {
	api := "http://" + os.Args[1]
	limits, err := client.Open(&client.Options{Tries: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer limits.Close()
	through := func(scope string) *http.Client {
		return &http.Client{Transport: limits.Transport(&client.RequestOptions{IdempotencyKey: true, Scope: scope})}
	}
	ctx := context.Background()

	chat := openai.NewClient(option.WithBaseURL(api+"/openai/v1"), option.WithAPIKey("k"),
		option.WithMaxRetries(0), option.WithHTTPClient(through("openai")))
	asked := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")}}
	completion, err := chat.Chat.Completions.New(ctx, asked)
	if err != nil {
		log.Fatal(err)
	}
	expect(completion.Choices[0].Message.Content, nil)
	var text strings.Builder
	events := chat.Chat.Completions.NewStreaming(ctx, asked)
	for events.Next() {
		word := events.Current().Choices[0].Delta.Content
		text.WriteString(word)
		if word != "" { // the API sends the next word then
			said, err := http.Get(api + "/got")
			if err != nil {
				log.Fatal(err)
			}
			said.Body.Close()
		}
	}
	expect(text.String(), events.Err())

	hub := github.NewClient(through("github"))
	hub.BaseURL, _ = url.Parse(api + "/github/")
	user, _, err := hub.Users.Get(ctx, "")
	if err != nil || user.GetLogin() != "octocat" {
		log.Fatal(user, err)
	}

	answer, err := through("plain").Get(api + "/plain")
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(body), said) {
		log.Fatal(string(body), err)
	}
	fmt.Println("passed")
}
