// What a load run counted.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	maxSamples = 20
	maxNames   = 1000 // distinct pods and workers that are told apart
)

// outcome is one finished request.
type outcome struct {
	at     time.Duration
	took   time.Duration
	method string
	path   string
	sent   int
	resent bool
	reply  *reply
	err    *requestError
}

// sample is one failure as reported.
type sample struct {
	AtMs     float64 `json:"at_ms"`
	Wall     string  `json:"time"`
	Kind     string  `json:"kind"`
	Method   string  `json:"method"`
	Path     string  `json:"path"`
	TookMs   float64 `json:"took_ms"`
	Status   int     `json:"status,omitempty"`
	Error    string  `json:"error,omitempty"`
	Kube     string  `json:"kube_error,omitempty"`
	Upstream string  `json:"upstream,omitempty"`
	Worker   string  `json:"worker,omitempty"`
	Pod      string  `json:"pod,omitempty"`
}

type loadStats struct {
	mu       sync.Mutex
	opened   int
	reopened int
	took     []float64
	status   map[string]int
	kinds    map[string]int
	pods     map[string]int
	workers  map[string]int
	failed   int
	posts    int
	resent   int
	resentPo int
	first    float64
	last     float64
	samples  []sample
}

func newLoadStats() *loadStats {
	return &loadStats{
		status: map[string]int{}, kinds: map[string]int{},
		pods: map[string]int{}, workers: map[string]int{},
		samples: []sample{},
	}
}

func (s *loadStats) connections(opened int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened += opened
	s.reopened += max(opened-1, 0)
}

func (s *loadStats) add(o *outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.took = append(s.took, ms(o.took))
	if o.method == http.MethodPost {
		s.posts++
	}
	if o.resent {
		s.resent++
		if o.method == http.MethodPost {
			s.resentPo++
		}
	}
	if o.reply != nil {
		s.status[strconv.Itoa(o.reply.status)]++
		tally(s.pods, o.reply.header.Get("X-Pod"))
		tally(s.workers, o.reply.header.Get("X-Worker-Pid"))
	}

	kind := o.failure()
	if kind == "" {
		return
	}
	at := ms(o.at)
	if s.failed == 0 {
		s.first = at
	}
	s.failed++
	s.last = at
	s.kinds[kind]++
	if len(s.samples) < maxSamples {
		s.samples = append(s.samples, o.sample(kind, at))
	}
}

func tally(m map[string]int, name string) {
	if _, known := m[name]; name != "" && (known || len(m) < maxNames) {
		m[name]++
	}
}

// failure names what was wrong, or nothing. An answer that did not see the
// whole body is one: the request was not carried out.
func (o *outcome) failure() string {
	switch {
	case o.err != nil:
		return o.err.kind
	case o.reply.status/100 != 2:
		return "status"
	case o.method == http.MethodPost:
		echo := o.reply.header.Get("X-Body-Length")
		if echo != "" && echo != strconv.Itoa(o.sent) {
			return "echo"
		}
	}
	return ""
}

func (o *outcome) sample(kind string, at float64) sample {
	s := sample{
		AtMs: at, Kind: kind, Method: o.method, Path: o.path,
		Wall:   time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		TookMs: ms(o.took),
	}
	if o.err != nil {
		s.Error = o.err.cause.Error()
	}
	if o.reply != nil {
		h := o.reply.header
		s.Status = o.reply.status
		s.Kube = h.Get("X-Kube-Error")
		s.Worker = h.Get("X-Worker-Pid")
		s.Pod = h.Get("X-Pod")
		s.Upstream = h.Get("X-Upstream-Addr")
		if s.Upstream == "" {
			s.Upstream = h.Get("X-Pod-Addr")
		}
	}
	return s
}

// progress is what is known while the load runs.
func (s *loadStats) progress() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{
		"total": len(s.took), "failed": s.failed, "status": clone(s.status),
		"pods": len(s.pods),
	}
}

func (s *loadStats) report(took time.Duration) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()

	slices.Sort(s.took)
	return map[string]any{
		"total": len(s.took), "failed": s.failed, "posts": s.posts,
		"status": s.status, "failures": s.kinds, "errors": s.samples,
		"first_failure_ms": s.first, "last_failure_ms": s.last,
		"resent": s.resent, "resent_posts": s.resentPo,
		"connections_opened": s.opened, "reconnects": s.reopened,
		"pods": s.pods, "workers": s.workers,
		"seconds":    took.Seconds(),
		"per_second": float64(len(s.took)) / took.Seconds(),
		"p50_ms":     quantile(s.took, 0.5),
		"p99_ms":     quantile(s.took, 0.99),
		"longest_ms": quantile(s.took, 1),
	}
}

func clone(m map[string]int) map[string]int {
	c := make(map[string]int, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

func ms(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// quantile takes the nearest rank of sorted values; 0 where there are none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}
