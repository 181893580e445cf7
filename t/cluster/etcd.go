// etcd and its compaction. etcd is a process of its own, so that the API server
// can be killed and started again without losing the state or its history.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

func runEtcd(ctx context.Context, args []string) error {
	s := newService("etcd")
	dir := s.flags.String("dir", "", "data directory")
	listen := s.flags.String("listen", "127.0.0.1:2379", "client address")
	peer := s.flags.String("peer", "127.0.0.1:2380", "peer address")
	if err := s.parse(args); err != nil {
		return err
	}
	if err := require(map[string]string{"dir": *dir}); err != nil {
		return err
	}

	client := url.URL{Scheme: "http", Host: *listen}
	peers := url.URL{Scheme: "http", Host: *peer}

	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(*dir, "etcd")
	cfg.UnsafeNoFsync = true
	cfg.LogLevel = "warn"
	cfg.LogOutputs = []string{"stderr"}
	cfg.ListenClientUrls = []url.URL{client}
	cfg.AdvertiseClientUrls = []url.URL{client}
	cfg.ListenPeerUrls = []url.URL{peers}
	cfg.AdvertisePeerUrls = []url.URL{peers}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)

	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer e.Close()

	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return err
	case <-time.After(30 * time.Second):
		return errors.New("etcd was not ready after 30 s")
	case <-ctx.Done():
		return nil
	}

	ready(map[string]any{"url": client.String()})

	select {
	case err := <-e.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}

// runCompact discards etcd's history up to a revision, physically, and prints
// the revision.
func runCompact(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("compact", flag.ExitOnError)
	endpoint := fs.String("etcd", "http://127.0.0.1:2379", "etcd URL")
	revision := fs.String("revision", "latest", "revision, or latest")
	if err := fs.Parse(args); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	c, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{*endpoint},
		DialTimeout: 5 * time.Second,
	})
	if err != nil {
		return err
	}
	defer c.Close()

	var rev int64
	if *revision == "latest" {
		// Any read answers with the revision of the whole store.
		got, err := c.Get(ctx, "\x00")
		if err != nil {
			return err
		}
		rev = got.Header.Revision
	} else if _, err := fmt.Sscanf(*revision, "%d", &rev); err != nil {
		return fmt.Errorf("-revision %q is no number", *revision)
	}

	_, err = c.Compact(ctx, rev, clientv3.WithCompactPhysical())
	if err != nil {
		return err
	}

	printJSON(map[string]any{"revision": rev})
	return nil
}
