// follow: client-go's informers of Services and EndpointSlices, for bench/run.py.
// For benchmarks only.
//
//	follow -server http://127.0.0.1:8001 -form pb -last 910000
//	follow -kubeconfig FILE -namespace bench
//
// Prints "synced" once both hold everything, and "last" once the EndpointSlice
// of that resourceVersion has come; with -stamps before it a line for each
// EndpointSlice since: resourceVersion, and the wall clock's ns as the handler
// was called. All else is client-go's default, gzip too (but
// with -identity); its feature WatchListClient is set by the environment
// (KUBE_FEATURE_WatchListClient).
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"runtime"
	"runtime/debug"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// stamp is when the handler was given a version.
type stamp struct {
	version string
	ns      int64
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == "k8s.io/client-go" {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			return "client-go " + dep.Version + ", " + runtime.Version()
		}
	}
	return "client-go, " + runtime.Version()
}

func main() {
	server := flag.String("server", "", "URL")
	file := flag.String("kubeconfig", "", "instead of -server")
	namespace := flag.String("namespace", "", "follow this alone")
	ca := flag.String("ca", "", "file of the CA of -server")
	identity := flag.Bool("identity", false, "do not ask for gzip")
	form := flag.String("form", "pb", "pb or json")
	last := flag.String("last", "", "resourceVersion")
	stamps := flag.Bool("stamps", false, "say when each EndpointSlice came")
	show := flag.Bool("version", false, "print client-go's and Go's")
	flag.Parse()
	if *show {
		fmt.Println(version())
		return
	}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)

	config, err := clientcmd.BuildConfigFromFlags(*server, *file)
	if err != nil {
		log.Fatal(err)
	}
	config.DisableCompression = *identity
	if *ca != "" {
		config.CAFile = *ca
	}
	config.ContentType = "application/json"
	if *form == "pb" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	var came []stamp
	see := func(obj any) {
		if s, ok := obj.(*discoveryv1.EndpointSlice); ok && s.ResourceVersion == *last {
			for _, c := range came {
				fmt.Println(c.version, c.ns)
			}
			fmt.Println("last")
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: see,
		UpdateFunc: func(_, obj any) {
			if s, ok := obj.(*discoveryv1.EndpointSlice); ok && *stamps {
				came = append(came, stamp{s.ResourceVersion, time.Now().UnixNano()})
			}
			see(obj)
		},
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0,
		informers.WithNamespace(*namespace))
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Services().Informer(),
		factory.Discovery().V1().EndpointSlices().Informer(),
	} {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			log.Fatal(err)
		}
		synced = append(synced, informer.HasSynced, registration.HasSynced)
	}
	factory.StartWithContext(context.Background())

	// cache.WaitForCacheSync() looks every 100 ms
	for _, is := range synced {
		for !is() {
			time.Sleep(time.Millisecond)
		}
	}
	fmt.Println("synced")
	select {}
}
