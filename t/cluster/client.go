// Clients of the API server: configurations that do not throttle themselves, and
// the raw subcommand.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	dialAgain    = 50 * time.Millisecond
	dialPatience = 10 * time.Minute
)

// clientConfig reads a kubeconfig. The client's own rate limit is off: the
// rig's speed must not depend on it.
func clientConfig(path string) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	cfg.UserAgent = "kube-testbed"
	return cfg, nil
}

// newClient returns a typed client that speaks protobuf, for the controllers
// and the kubelet. It is patient: client-go's informers back off for up to a
// minute when they are refused, and tests would wait that long after each
// outage for the cluster itself to go on.
func newClient(path string) (kubernetes.Interface, error) {
	for name, seconds := range map[string]string{
		"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5",
		"HTTP2_PING_TIMEOUT_SECONDS":      "3",
	} {
		if err := os.Setenv(name, seconds); err != nil {
			return nil, err
		}
	}

	cfg, err := clientConfig(path)
	if err != nil {
		return nil, err
	}
	cfg.Dial = patientDial
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	cfg.AcceptContentTypes = cfg.ContentType + ",application/json"
	return kubernetes.NewForConfig(cfg)
}

// patientDial tries until somebody listens, so that a request waits for the
// server to be back instead of failing again and again.
func patientDial(ctx context.Context, network, addr string) (net.Conn,
	error) {

	d := net.Dialer{Timeout: time.Second}
	end := time.Now().Add(dialPatience)
	for {
		conn, err := d.DialContext(ctx, network, addr)
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return conn, err
		}
		select {
		case <-time.After(dialAgain):
		case <-ctx.Done():
		}
	}
}

// runRaw does one authenticated request: raw -kubeconfig F METHOD PATH [BODY].
// It prints the answer's body; a status that is not 2xx is an error.
func runRaw(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("raw", flag.ExitOnError)
	kubeconfig := fs.String("kubeconfig", "", "kubeconfig")
	kind := fs.String("content-type", "application/json", "of the body")
	timeout := fs.Duration("timeout", 30*time.Second, "for the whole request")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() < 2 || fs.NArg() > 3 {
		return errors.New("usage: raw -kubeconfig F METHOD PATH [BODY|-]")
	}

	var body io.Reader
	switch {
	case fs.Arg(2) == "-":
		body = os.Stdin
	case fs.NArg() == 3:
		body = strings.NewReader(fs.Arg(2))
	}

	cfg, err := clientConfig(*kubeconfig)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	client.Timeout = *timeout

	req, err := http.NewRequestWithContext(ctx, fs.Arg(0),
		strings.TrimSuffix(cfg.Host, "/")+fs.Arg(1), body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", *kind)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(answer))
	}
	_, err = os.Stdout.Write(answer)
	return err
}
