// SPDX-License-Identifier: Apache-2.0

// A control plane of go-control-plane, as Envoy Gateway has it: test_go_control_plane.py drives it.
//
// Usage: plane PORT [CERT KEY CA]: PORT 0 takes a free one; with files both sides show certificates.
//
// It prints "port N" first. Each line that it reads is {"node": ID, "version": V, "configs": [...]},
// the next snapshot of that node; each line that it prints after that is a JSON object: a request
// ({"request": …}) or a response ({"response": …}), as go-control-plane's callbacks have them.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"sync"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"
)

type snapshot struct {
	Node    string            `json:"node"`
	Version string            `json:"version"`
	Configs []json.RawMessage `json:"configs"`
}

var printing sync.Mutex

func tell(what string, members map[string]string) {
	line, err := json.Marshal(map[string]map[string]string{what: members})
	if err != nil {
		log.Fatal(err)
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(line))
}

func onRequest(_ int64, request *discovery.DiscoveryRequest) error {
	members := map[string]string{
		"node": request.GetNode().GetId(), "type": request.GetTypeUrl(),
		"version": request.GetVersionInfo(), "nonce": request.GetResponseNonce(),
	}
	if detail := request.GetErrorDetail(); detail != nil {
		members["error"] = detail.GetMessage()
	}
	tell("request", members)
	return nil
}

func onResponse(_ context.Context, _ int64, _ *discovery.DiscoveryRequest, response *discovery.DiscoveryResponse) {
	tell("response", map[string]string{"version": response.GetVersionInfo(), "nonce": response.GetNonce()})
}

func certificates(cert, key, ca string) grpc.ServerOption {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		log.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(text)
	return grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: authorities,
		ClientAuth: tls.RequireAndVerifyClientCert,
	}))
}

func put(snapshots cache.SnapshotCache, line []byte) error {
	var given snapshot
	if err := json.Unmarshal(line, &given); err != nil {
		return err
	}
	resources := []types.Resource{}
	for _, text := range given.Configs {
		config := &ratelimit.RateLimitConfig{}
		if err := protojson.Unmarshal(text, config); err != nil {
			return err
		}
		resources = append(resources, config)
	}
	made, err := cache.NewSnapshot(given.Version, map[resource.Type][]types.Resource{
		resource.RateLimitConfigType: resources,
	})
	if err != nil {
		return err
	}
	return snapshots.SetSnapshot(context.Background(), given.Node, made)
}

func main() {
	options := []grpc.ServerOption{}
	if len(os.Args) == 5 {
		options = append(options, certificates(os.Args[2], os.Args[3], os.Args[4]))
	}
	snapshots := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	callbacks := server.CallbackFuncs{StreamRequestFunc: onRequest, StreamResponseFunc: onResponse}
	plane := grpc.NewServer(options...)
	discovery.RegisterAggregatedDiscoveryServiceServer(
		plane, server.NewServer(context.Background(), snapshots, callbacks))
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
	go func() { log.Fatal(plane.Serve(listener)) }()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if err := put(snapshots, lines.Bytes()); err != nil {
			log.Fatal(err)
		}
	}
}
