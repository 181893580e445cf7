// A connection over blocking system calls. Go's poller rounds short waits up to a
// millisecond and adds its scheduling; what is timed here must not pay that,
// nor lend it to the watch it is compared with. Each user locks its thread.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// rawConn implements net.Conn, as far as crypto/tls and bufio use it.
type rawConn struct {
	fd     int
	remote net.Addr
}

// dialRaw connects; no read or write then blocks longer than timeout.
func dialRaw(addr netip.AddrPort, timeout time.Duration) (*rawConn, error) {
	fd, err := unix.Socket(unix.AF_INET,
		unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}

	tv := unix.NsecToTimeval(timeout.Nanoseconds())
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		connectRaw(fd, addr))
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &rawConn{fd, net.TCPAddrFromAddrPort(addr)}, nil
}

func connectRaw(fd int, addr netip.AddrPort) error {
	to := &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	return os.NewSyscallError("connect", unix.Connect(fd, to))
}

func (c *rawConn) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(c.fd, b)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (c *rawConn) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(c.fd, b[done:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, os.NewSyscallError("write", err)
		}
		done += n
	}
	return done, nil
}

// stop ends a Read that blocks in another thread.
func (c *rawConn) stop() {
	_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
}

func (c *rawConn) Close() error {
	return unix.Close(c.fd)
}

func (c *rawConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *rawConn) RemoteAddr() net.Addr             { return c.remote }
func (c *rawConn) SetDeadline(time.Time) error      { return nil }
func (c *rawConn) SetReadDeadline(time.Time) error  { return nil }
func (c *rawConn) SetWriteDeadline(time.Time) error { return nil }

// nap sleeps without the runtime's timers.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&ts, nil)
}
