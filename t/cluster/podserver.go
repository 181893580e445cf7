// What a pod serves: an HTTP server that names itself, waits as long as it is
// asked to, and ends the way a well-behaved program does.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const podDelayMax = time.Minute

// podServer serves on any number of addresses under one name.
type podServer struct {
	name    string
	servers []*http.Server
}

func newPodServer(name string) *podServer {
	return &podServer{name: name}
}

// listen opens the ports; it serves when it returns.
func (s *podServer) listen(host string, ports []int32) error {
	for _, port := range ports {
		addr := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if err := s.listenOn(addr); err != nil {
			s.close()
			return err
		}
	}
	return nil
}

func (s *podServer) listenOn(addr string) error {
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			answer(w, r, s.name, addr)
		}),
		ReadHeaderTimeout: time.Minute,
	}
	s.servers = append(s.servers, server)
	go func() { _ = server.Serve(l) }()
	return nil
}

// stopListening closes the listeners and the idle connections at once;
// requests in flight go on.
func (s *podServer) stopListening() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for _, server := range s.servers {
		// With a context that has ended, Shutdown does its first round
		// only: listeners and idle connections.
		_ = server.Shutdown(now)
	}
}

// drain gives requests in flight a time, and then cuts them.
func (s *podServer) drain(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, server := range s.servers {
		_ = server.Shutdown(ctx)
	}
	s.close()
}

func (s *podServer) close() {
	for _, server := range s.servers {
		_ = server.Close()
	}
}

// answer reads the whole body, waits ?delay=, and says who answered whom.
func answer(w http.ResponseWriter, r *http.Request, name, addr string) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return
	}
	delay, err := time.ParseDuration(r.URL.Query().Get("delay"))
	if err == nil && delay > 0 {
		time.Sleep(min(delay, podDelayMax))
	}

	body, err := json.Marshal(map[string]any{
		"pod": name, "addr": addr, "method": r.Method, "host": r.Host,
		"uri": r.RequestURI, "body": n,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	h.Set("X-Pod", name)
	h.Set("X-Pod-Addr", addr)
	h.Set("X-Body-Length", strconv.FormatInt(n, 10))
	fmt.Fprintf(w, "%s\n", body)
}
