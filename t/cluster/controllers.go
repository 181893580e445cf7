// The controllers that make pods of a Deployment and EndpointSlices of pods: the
// real ones, over one informer factory.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/replicaset"
)

const (
	controllerWorkers = 5

	// As kube-controller-manager's defaults.
	maxEndpointsPerSlice = 100
	burstReplicas        = 500
)

func runControllers(ctx context.Context, args []string) error {
	s := newService("controllers")
	kubeconfig := s.flags.String("kubeconfig", "", "kubeconfig")
	if err := s.parse(args); err != nil {
		return err
	}
	client, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}

	f := informers.NewSharedInformerFactory(client, 0)
	apps, core := f.Apps().V1(), f.Core().V1()

	deployments, err := deployment.NewDeploymentController(ctx,
		apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
	if err != nil {
		return err
	}
	replicaSets := replicaset.NewReplicaSetController(ctx,
		apps.ReplicaSets(), core.Pods(), client, burstReplicas)
	slices := endpointslice.NewController(ctx, core.Pods(), core.Services(),
		core.Nodes(), f.Discovery().V1().EndpointSlices(),
		maxEndpointsPerSlice, client, 0)

	f.Start(ctx.Done())
	for kind, ok := range f.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("%v did not sync", kind)
		}
	}

	var running sync.WaitGroup
	for _, run := range []func(context.Context, int){
		deployments.Run, replicaSets.Run, slices.Run,
	} {
		running.Go(func() { run(ctx, controllerWorkers) })
	}
	ready(nil)
	<-ctx.Done()
	fmt.Fprintln(os.Stderr, "controllers: told to stop")
	running.Wait()
	return nil
}
