// Probers: connections that ask one nginx worker each, all the time, and note the
// first answer that comes from an expected address.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	probeTimeout   = 5 * time.Second
	maxConnections = 400 // tried, to find all workers
	maxFailures    = 20
)

// expected is what all probers wait for; a new one for each swap.
type expected struct {
	addr string
}

// prober is one connection to one worker, and one thread.
type prober struct {
	set    *probeSet
	conn   *rawConn
	in     *bufio.Reader
	worker string
}

type probeSet struct {
	addr    netip.AddrPort
	request []byte
	pause   time.Duration
	probers []*prober

	want    atomic.Pointer[expected]
	halt    atomic.Bool
	running sync.WaitGroup

	mu       sync.Mutex
	first    map[string]time.Time // by worker, of the expected address
	changed  chan struct{}
	counting bool
	began    time.Time
	count    map[string]int
	took     []float64
	gaps     []float64
	back     int
	failed   []string
}

// newProbeSet opens connections until each worker has its probers. How the
// kernel spreads connections is its own affair, so more are tried, all open
// at the same time, than are kept.
func newProbeSet(u *url.URL, host string, workers, each int,
	pause time.Duration) (*probeSet, error) {

	addr, err := hostPort(u)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = u.Host
	}
	s := &probeSet{
		addr:    addr,
		request: encodeRequest(http.MethodGet, host, u.RequestURI(), nil),
		pause:   pause,
		first:   map[string]time.Time{},
		changed: make(chan struct{}, 1),
		count:   map[string]int{},
	}

	var spare []*prober
	defer func() {
		for _, p := range spare {
			p.conn.Close()
		}
	}()
	have := map[string]int{}
	for range maxConnections {
		p, err := s.open()
		if err != nil {
			return nil, err
		}
		if len(have) == workers && have[p.worker] == 0 ||
			have[p.worker] == each {
			spare = append(spare, p)
			continue
		}
		have[p.worker]++
		s.probers = append(s.probers, p)
		if len(s.probers) == workers*each {
			for _, p := range s.probers {
				s.running.Go(p.run)
			}
			return s, nil
		}
	}
	spare = append(spare, s.probers...)
	return nil, fmt.Errorf("%d connections reached these workers only: %v",
		maxConnections, have)
}

func (s *probeSet) open() (*prober, error) {
	conn, err := dialRaw(s.addr, probeTimeout)
	if err != nil {
		return nil, err
	}
	p := &prober{set: s, conn: conn, in: bufio.NewReaderSize(conn, 8<<10)}
	r, err := p.ask()
	if err == nil {
		p.worker = r.Header.Get("X-Worker-Pid")
		if p.worker == "" {
			err = errors.New("the answer has no X-Worker-Pid")
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return p, nil
}

// ask does one request and reads its answer to the end.
func (p *prober) ask() (*http.Response, error) {
	if _, err := p.conn.Write(p.set.request); err != nil {
		return nil, err
	}
	r, err := http.ReadResponse(p.in, nil)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	if r.Close {
		return nil, errors.New("nginx closes the connection " +
			"(keepalive_requests is too small)")
	}
	return r, nil
}

// run probes until told to stop. A connection that fails ends its prober: a new
// one might reach another worker, and what is missing shows in the result.
func (p *prober) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { p.conn.Close() }()

	var previous time.Time
	var settled *expected
	for !p.set.halt.Load() {
		want := p.set.want.Load()
		start := time.Now()
		r, err := p.ask()
		now := time.Now()
		if err != nil {
			p.set.fail(p.worker, err.Error())
			return
		}
		if r.StatusCode != http.StatusOK {
			p.set.fail(p.worker, r.Status)
		}

		// Judged by what was expected before the request was sent.
		from := r.Header.Get("X-Pod-Addr")
		switch {
		case want == nil || r.StatusCode != http.StatusOK:
		case from == want.addr && settled != want:
			settled = want
			p.set.note(want, p.worker, now)
		case from != want.addr && settled == want &&
			p.set.want.Load() == want:
			// Else it may be the next swap's address, early.
			p.set.wentBack()
		}
		p.set.probed(p.worker, start, now, previous)
		previous = now
		nap(p.set.pause)
	}
}

// expect begins a new wait.
func (s *probeSet) expect(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = map[string]time.Time{}
	s.want.Store(&expected{addr})
}

// note keeps the earliest sight of each worker.
func (s *probeSet) note(want *expected, worker string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.want.Load() != want {
		return
	}
	if old, ok := s.first[worker]; !ok || at.Before(old) {
		s.first[worker] = at
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// wait returns the workers that did not answer from the expected address.
func (s *probeSet) wait(ctx context.Context, limit time.Duration) []string {
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		late := s.late()
		if len(late) == 0 {
			return nil
		}
		select {
		case <-s.changed:
		case <-end.C:
			return s.late()
		case <-ctx.Done():
			return late
		}
	}
}

func (s *probeSet) late() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var late []string
	for _, worker := range s.workers() {
		if _, ok := s.first[worker]; !ok {
			late = append(late, worker)
		}
	}
	return late
}

func (s *probeSet) seen() map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]time.Time{}
	for worker, at := range s.first {
		seen[worker] = at
	}
	return seen
}

// workers does not change once the set is made.
func (s *probeSet) workers() []string {
	var names []string
	for _, p := range s.probers {
		if !slices.Contains(names, p.worker) {
			names = append(names, p.worker)
		}
	}
	return names
}

func (s *probeSet) startCounting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counting = true
	s.began = time.Now()
}

func (s *probeSet) probed(worker string, start, now, previous time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.counting {
		return
	}
	s.count[worker]++
	s.took = append(s.took, signedMs(now.Sub(start)))
	if !previous.IsZero() {
		s.gaps = append(s.gaps, signedMs(now.Sub(previous)))
	}
}

func (s *probeSet) wentBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back++
}

func (s *probeSet) fail(worker, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failed) < maxFailures {
		s.failed = append(s.failed, "worker "+worker+": "+what)
	}
}

func (s *probeSet) failures() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *probeSet) stop() {
	s.halt.Store(true)
	s.running.Wait()
}

// report is for after stop. went_back counts answers from an address that had
// been left before: there must be none.
func (s *probeSet) report() map[string]any {
	seconds := time.Since(s.began).Seconds()
	rate := map[string]float64{}
	for worker, n := range s.count {
		rate[worker] = float64(n) / seconds
	}
	return map[string]any{
		"per_second": rate, "went_back": s.back,
		"took_ms": distribution(s.took), "gap_ms": distribution(s.gaps),
	}
}

// distribution sorts a copy and names the usual ranks.
func distribution(values []float64) map[string]any {
	v := slices.Sorted(slices.Values(values))
	d := map[string]any{"n": len(v)}
	if len(v) > 0 {
		d["min_ms"] = v[0]
		d["median_ms"] = quantile(v, 0.5)
		d["p90_ms"] = quantile(v, 0.9)
		d["p99_ms"] = quantile(v, 0.99)
		d["max_ms"] = quantile(v, 1)
	}
	return d
}
