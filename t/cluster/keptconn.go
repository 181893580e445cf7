// One kept HTTP/1.1 connection of a client that wants to know exactly what
// happened to each request: net/http hides retries and connection changes.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// keptConn is one connection at a time to one address, opened when needed.
type keptConn struct {
	addr    string
	timeout time.Duration

	conn     net.Conn
	in       *bufio.Reader
	requests int // answered on this connection
	opened   int // connections opened in all
}

// reply is one complete answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// requestError says how a request failed. closedUnanswered: a kept connection
// ended before any byte of answer, so that HTTP allows to send again.
type requestError struct {
	kind             string
	cause            error
	closedUnanswered bool
}

func (e *requestError) Error() string {
	return fmt.Sprintf("%s: %v", e.kind, e.cause)
}

// encodeRequest returns the bytes of one request.
func encodeRequest(method, host, path string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n"+
		"User-Agent: kube-testbed\r\n", method, path, host)
	if method != http.MethodGet {
		fmt.Fprintf(&b, "Content-Type: application/octet-stream\r\n"+
			"Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// do sends one request and reads its whole answer. After any error the
// connection is closed; the next call opens another.
func (c *keptConn) do(method string, request []byte) (*reply, *requestError) {
	fail := func(kind string, err error) *requestError {
		reused := c.requests > 0
		c.close()

		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			return &requestError{kind: kind + " timeout", cause: err}
		}
		return &requestError{kind, err, reused && kind == "first byte"}
	}

	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addr, c.timeout)
		if err != nil {
			return nil, fail("connect", err)
		}
		c.opened++
		c.conn = conn
		c.in = bufio.NewReaderSize(conn, 16<<10)
	}
	if err := c.conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return nil, fail("deadline", err)
	}

	// A failed write is judged by what can still be read: an answer may have
	// come before the peer closed.
	_, writeErr := c.conn.Write(request)
	if _, err := c.in.Peek(1); err != nil {
		if writeErr != nil {
			err = writeErr
		}
		return nil, fail("first byte", err)
	}

	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		return nil, fail("header", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fail("body", err)
	}
	c.requests++
	if resp.Close || writeErr != nil {
		c.close()
	}
	return &reply{resp.StatusCode, resp.Header, body}, nil
}

func (c *keptConn) close() {
	if c.conn != nil {
		c.conn.Close()
	}
	c.conn = nil
	c.in = nil
	c.requests = 0
}
