// Load from kept connections, each a closed loop, bounded in requests and time;
// what failed is counted, dated and sampled.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	postMin = 1
	postMax = 16 << 10

	progressEvery = 50 * time.Millisecond
)

// loadTarget is one address with the Host it is asked for.
type loadTarget struct {
	addr string
	host string
	path string
}

type loader struct {
	targets     []loadTarget
	hosts       []string
	paths       []string
	delays      []string
	connections int
	requests    int64
	rate        float64
	postShare   float64
	duration    time.Duration
	timeout     time.Duration
	retryClosed bool
	seed        uint64

	began  time.Time
	issued atomic.Int64
	stats  *loadStats
}

func runLoad(ctx context.Context, args []string) error {
	l := &loader{stats: newLoadStats()}
	s := newService("load")
	target := s.flags.String("target", "",
		"http://host:port[/path], or several with commas")
	hosts := s.flags.String("host", "", "Host header, or several in turn")
	paths := s.flags.String("path", "", "path, or several in turn")
	delays := s.flags.String("delays", "",
		"values of ?delay=, in turn, such as 0ms,50ms")
	s.flags.IntVar(&l.connections, "connections", 16, "kept connections")
	s.flags.Int64Var(&l.requests, "requests", 1000, "requests in all")
	s.flags.Float64Var(&l.rate, "rate", 0, "requests a second, 0 = all it can")
	s.flags.Float64Var(&l.postShare, "post-share", 0, "share of POST, 0 to 1")
	s.flags.DurationVar(&l.duration, "duration", 5*time.Minute, "at most")
	s.flags.DurationVar(&l.timeout, "timeout", 10*time.Second, "of a request")
	s.flags.BoolVar(&l.retryClosed, "retry-closed", false,
		"send once more when a kept connection was closed unanswered")
	s.flags.Uint64Var(&l.seed, "seed", 1, "of sizes and methods")
	stopFile := s.flags.String("stop-file", "", "stop once this exists")
	progress := s.flags.String("progress-file", "",
		"keep running totals in this file")
	stdin := s.flags.Bool("until-stdin-closes", false,
		"stop, and still report, when standard input ends")
	if err := s.parse(args); err != nil {
		return err
	}
	if err := l.setTargets(*target); err != nil {
		return err
	}
	l.hosts, l.paths = list(*hosts), list(*paths)
	l.delays = list(*delays)

	ctx, cancel := context.WithTimeout(ctx, l.duration)
	defer cancel()
	if *stdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	var watcher sync.WaitGroup
	watched, stopWatching := context.WithCancel(context.Background())
	watcher.Go(func() { l.watch(watched, cancel, *stopFile, *progress) })

	ready(nil)
	l.run(ctx)
	stopWatching()
	watcher.Wait()
	printJSON(l.stats.report(time.Since(l.began)))
	return nil
}

func (l *loader) setTargets(text string) error {
	for _, t := range list(text) {
		u, err := url.Parse(t)
		if err != nil {
			return err
		}
		if u.Scheme != "http" || u.Port() == "" {
			return errors.New("-target: http://host:port, please")
		}
		path := u.RequestURI()
		l.targets = append(l.targets, loadTarget{u.Host, u.Host, path})
	}
	if len(l.targets) == 0 || l.connections < 1 {
		return errors.New("-target and at least one connection are needed")
	}
	return nil
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func (l *loader) run(ctx context.Context) {
	l.began = time.Now()
	var running sync.WaitGroup
	for i := range l.connections {
		running.Go(func() { l.loop(ctx, i) })
	}
	running.Wait()
}

// loop is one connection's closed loop. A request once sent is waited for,
// even when the time is up.
func (l *loader) loop(ctx context.Context, i int) {
	target := l.targets[i%len(l.targets)]
	random := rand.New(rand.NewPCG(l.seed, uint64(i)))
	payload := bytes.Repeat([]byte("kube-testbed "), postMax/13+1)
	conn := &keptConn{addr: target.addr, timeout: l.timeout}
	defer conn.close()
	defer func() { l.stats.connections(conn.opened) }()

	for ctx.Err() == nil {
		n := l.issued.Add(1) - 1
		if n >= l.requests || !l.pace(ctx, n) {
			return
		}
		method, body := http.MethodGet, []byte(nil)
		if random.Float64() < l.postShare {
			method = http.MethodPost
			body = payload[:postMin+random.IntN(postMax-postMin)]
		}
		l.one(conn, target, n, method, body)
	}
}

// pace waits for request n's turn; false: the time was up before.
func (l *loader) pace(ctx context.Context, n int64) bool {
	if l.rate <= 0 {
		return true
	}
	due := time.Duration(float64(n) / l.rate * float64(time.Second))
	wait := due - time.Since(l.began)
	if wait <= 0 {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// one is one request with, where allowed, its second try.
func (l *loader) one(conn *keptConn, target loadTarget, n int64,
	method string, body []byte) {

	host := turn(l.hosts, n, target.host)
	path := turn(l.paths, n, target.path)
	if delay := turn(l.delays, n, ""); delay != "" {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "delay=" + delay
	}
	request := encodeRequest(method, host, path, body)

	start := time.Now()
	r, err := conn.do(method, request)
	resent := false
	if err != nil && err.closedUnanswered && l.retryClosed {
		resent = true
		r, err = conn.do(method, request)
	}
	l.stats.add(&outcome{
		at: time.Since(l.began), took: time.Since(start), method: method,
		path: path, sent: len(body), resent: resent, reply: r, err: err,
	})
}

func turn(values []string, n int64, missing string) string {
	if len(values) == 0 {
		return missing
	}
	return values[n%int64(len(values))]
}

// watch looks for the stop file and keeps the progress file up to date.
func (l *loader) watch(ctx context.Context, stop func(), stopFile,
	progress string) {

	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for more := true; more; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			more = false
		}
		if stopFile != "" {
			if _, err := os.Stat(stopFile); err == nil {
				stop()
			}
		}
		if progress != "" {
			l.writeProgress(progress)
		}
	}
}

// writeProgress replaces the file, so that a reader never sees half of it.
func (l *loader) writeProgress(path string) {
	b, err := json.Marshal(l.stats.progress())
	if err != nil {
		return
	}
	fresh := path + "." + strconv.Itoa(os.Getpid())
	if os.WriteFile(fresh, b, 0o600) == nil {
		_ = os.Rename(fresh, path)
	}
}
