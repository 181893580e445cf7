// The bare watch that swap compares with: one TLS connection, one request, and a
// stamp as soon as a whole event has been read, before it is decoded.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"time"

	"k8s.io/client-go/rest"
)

// A watch asks for an hour; a read that blocks longer than this has failed.
const watchSilence = 10 * time.Minute

type watchEvent struct {
	at   time.Time
	addr string
	port int
}

type bareWatch struct {
	conn   *rawConn
	events chan watchEvent
	failed chan error
}

// openWatch watches one slice from now on.
func openWatch(cfg *rest.Config, namespace, slice string) (*bareWatch,
	error) {

	u, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	to, err := hostPort(u)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, err
	}
	tlsConfig = tlsConfig.Clone()
	tlsConfig.NextProtos = []string{"http/1.1"}
	if tlsConfig.ServerName == "" {
		tlsConfig.ServerName = u.Hostname()
	}

	conn, err := dialRaw(to, watchSilence)
	if err != nil {
		return nil, err
	}
	w := &bareWatch{
		conn:   conn,
		events: make(chan watchEvent, 1000),
		failed: make(chan error, 1),
	}
	path := fmt.Sprintf("/apis/discovery.k8s.io/v1/namespaces/%s/"+
		"endpointslices?watch=1&timeoutSeconds=3600&fieldSelector=%s",
		url.PathEscape(namespace),
		url.QueryEscape("metadata.name="+slice))
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n"+
		"User-Agent: kube-testbed\r\nAccept: application/json\r\n"+
		"Authorization: Bearer %s\r\n\r\n", path, u.Host, cfg.BearerToken)

	opened := make(chan error, 1)
	go w.read(tls.Client(conn, tlsConfig), request, opened)
	if err := <-opened; err != nil {
		return nil, err
	}
	return w, nil
}

// read owns the connection. Its thread is its own, so that nothing but the
// kernel stands between an arriving event and its stamp.
func (w *bareWatch) read(conn *tls.Conn, request string,
	opened chan<- error) {

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer conn.Close()

	_, err := conn.Write([]byte(request))
	if err != nil {
		opened <- err
		return
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 64<<10), nil)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New("watch: " + resp.Status)
	}
	opened <- err
	if err != nil {
		return
	}

	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		at := time.Now()
		if err != nil {
			w.failed <- fmt.Errorf("the watch ended: %w", err)
			return
		}
		w.deliver(at, line)
	}
}

func (w *bareWatch) deliver(at time.Time, line []byte) {
	var event struct {
		Type   string
		Object struct {
			Endpoints []struct{ Addresses []string }
			Ports     []struct{ Port int }
		}
	}
	if err := json.Unmarshal(line, &event); err != nil {
		w.failed <- err
		return
	}
	o := event.Object
	if event.Type == "BOOKMARK" || len(o.Endpoints) != 1 ||
		len(o.Endpoints[0].Addresses) != 1 || len(o.Ports) != 1 {
		return
	}
	w.events <- watchEvent{at, o.Endpoints[0].Addresses[0], o.Ports[0].Port}
}

// drain forgets the events that came so far.
func (w *bareWatch) drain() {
	for {
		select {
		case <-w.events:
		default:
			return
		}
	}
}

// next returns the stamp of the event that shows the address.
func (w *bareWatch) next(addr string, port int,
	limit time.Duration) (time.Time, error) {

	end := time.After(limit)
	for {
		select {
		case e := <-w.events:
			if e.addr == addr && e.port == port {
				return e.at, nil
			}
		case err := <-w.failed:
			return time.Time{}, err
		case <-end:
			return time.Time{}, errors.New("the watch saw no event")
		}
	}
}

// close ends the read; read's owner then closes the descriptor.
func (w *bareWatch) close() {
	w.conn.stop()
}
