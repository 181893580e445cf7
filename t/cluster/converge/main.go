// converge: client-go's informers against many scripted API servers at once.
// For tests only; t/converge says what is compared.
//
//	kube-converge < servers
//
// A line of the standard input is {"name", "url", "ca", "token"}: one client,
// with one shared informer of Services and one of EndpointSlices, and all
// defaults of client-go but two: JSON, and lists rather than streaming lists
// (KUBE_FEATURE_WatchListClient=false), for the scripts are of lists.
//
// A line of the standard output is {"name", "change", "resource", "key",
// "value"}: what a handler was told. The value is the number that tells the
// versions of one object apart: a Service's first port, the last byte of an
// endpoint's address.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/netip"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

type server struct {
	Name  string `json:"name"`
	URL   string `json:"url"`
	CA    string `json:"ca"`
	Token string `json:"token"`
}

type change struct {
	Name     string `json:"name"`
	Change   string `json:"change"`
	Resource string `json:"resource"`
	Key      string `json:"key"`
	Value    int    `json:"value"`
}

// printer writes whole lines.
type printer struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (p *printer) print(c change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.out.Encode(c); err != nil {
		log.Fatal(err)
	}
}

func describe(obj any) (resource, key string, value int) {
	switch o := obj.(type) {
	case cache.DeletedFinalStateUnknown:
		return describe(o.Obj)
	case *corev1.Service:
		if len(o.Spec.Ports) > 0 {
			value = int(o.Spec.Ports[0].Port)
		}
		return "services", o.Namespace + "/" + o.Name, value
	case *discoveryv1.EndpointSlice:
		if len(o.Endpoints) > 0 && len(o.Endpoints[0].Addresses) > 0 {
			if ip, err := netip.ParseAddr(o.Endpoints[0].Addresses[0]); err == nil {
				value = int(ip.As4()[3])
			}
		}
		return "endpointslices", o.Namespace + "/" + o.Name, value
	}
	log.Fatalf("%T", obj)
	return "", "", 0
}

func follow(s server, p *printer) error {
	config := &rest.Config{Host: s.URL, BearerTokenFile: s.Token}
	config.TLSClientConfig.CAFile = s.CA
	config.ContentType = "application/json"
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	say := func(what string, obj any) {
		resource, key, value := describe(obj)
		p.print(change{s.Name, what, resource, key, value})
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { say("add", obj) },
		UpdateFunc: func(_, obj any) { say("update", obj) },
		DeleteFunc: func(obj any) { say("delete", obj) },
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Services().Informer(),
		factory.Discovery().V1().EndpointSlices().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.StartWithContext(context.Background())
	return nil
}

func main() {
	verbose := flag.Bool("verbose", false, "client-go's log on the standard error")
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if *verbose {
		klog.SetOutput(os.Stderr)
	}
	p := &printer{out: json.NewEncoder(os.Stdout)}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var s server
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			log.Fatal(err)
		}
		if err := follow(s, p); err != nil {
			log.Fatalf("%s: %v", s.Name, err)
		}
	}
	select {}
}
