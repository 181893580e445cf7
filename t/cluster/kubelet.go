// The pretend kubelet: nodes, and for each pod the life a real one would give it.
// Binding, a start delay, an address on which it really serves, readiness, and
// at its end preStop, a closed listener and a grace for what is in flight. It
// goes on serving while the API server is away, as a real node does.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	annotationStart   = "testbed/start-ms"
	annotationPreStop = "testbed/prestop-ms"
	annotationGrace   = "testbed/grace-ms"
	annotationMax     = 10 * time.Minute

	defaultStart   = 100 * time.Millisecond
	defaultPreStop = 0
	defaultGrace   = 500 * time.Millisecond

	retryFirst = 50 * time.Millisecond
	retryMax   = time.Second
)

type kubelet struct {
	client kubernetes.Interface
	nodes  []string

	mu      sync.Mutex
	pods    map[types.UID]*pod
	binding map[types.UID]bool
	used    map[netip.Addr]types.UID
	next    netip.Addr
	first   netip.Addr
	subnet  netip.Prefix
	turn    int
}

// pod is one bound pod. terminate is closed when its deletion is seen, gone
// when the object itself is away.
type pod struct {
	namespace string
	name      string
	uid       types.UID
	addr      netip.Addr
	ports     []int32
	start     time.Duration
	grace     time.Duration

	preStop   time.Duration
	deleteOne sync.Once
	terminate chan struct{}
	goneOne   sync.Once
	gone      chan struct{}

	// Held while a status is reported: the last one sent is the last true.
	status sync.Mutex
}

func runKubelet(ctx context.Context, args []string) error {
	s := newService("kubelet")
	kubeconfig := s.flags.String("kubeconfig", "", "kubeconfig")
	subnet := s.flags.String("pods", "10.244.0.0/16",
		"pods get addresses of it, from x.y.1.1 on")
	nodes := s.flags.Int("nodes", 2, "how many nodes, in zone-a and zone-b")
	if err := s.parse(args); err != nil {
		return err
	}
	client, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	prefix, err := netip.ParsePrefix(*subnet)
	if err != nil {
		return err
	}
	if !prefix.Addr().Is4() || prefix.Bits() > 16 {
		return errors.New("-pods: an IPv4 prefix of at most 16 bits, please")
	}

	// The first 256 addresses are left to the control plane and the tests.
	b := prefix.Masked().Addr().As4()
	b[2]++
	b[3] = 1
	k := &kubelet{
		client:  client,
		pods:    map[types.UID]*pod{},
		binding: map[types.UID]bool{},
		used:    map[netip.Addr]types.UID{},
		next:    netip.AddrFrom4(b),
		first:   netip.AddrFrom4(b),
		subnet:  prefix.Masked(),
	}
	for i := range *nodes {
		if err := k.createNode(ctx, i); err != nil {
			return err
		}
	}
	return k.run(ctx)
}

func (k *kubelet) createNode(ctx context.Context, i int) error {
	name := fmt.Sprintf("node-%d", i)
	zone := "zone-" + string(rune('a'+i%2))
	capacity := v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse("4"),
		v1.ResourceMemory: resource.MustParse("16Gi"),
		v1.ResourcePods:   resource.MustParse("10000"),
	}
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1.LabelHostname:       name,
			v1.LabelTopologyZone:   zone,
			v1.LabelTopologyRegion: "region-1",
		}},
		Status: v1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			Conditions: []v1.NodeCondition{{
				Type: v1.NodeReady, Status: v1.ConditionTrue,
			}},
		},
	}

	_, err := k.client.CoreV1().Nodes().Create(ctx, node,
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	k.nodes = append(k.nodes, name)
	return nil
}

func (k *kubelet) run(ctx context.Context) error {
	f := informers.NewSharedInformerFactory(k.client, 0)
	informer := f.Core().V1().Pods().Informer()

	object := func(o any) *v1.Pod {
		if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = t.Obj
		}
		p, _ := o.(*v1.Pod)
		return p
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.sync(ctx, object(o)) },
		UpdateFunc: func(_, o any) { k.sync(ctx, object(o)) },
		DeleteFunc: func(o any) { k.forget(object(o)) },
	})
	if err != nil {
		return err
	}
	f.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the pods did not sync")
	}

	ready(map[string]any{"nodes": k.nodes})
	<-ctx.Done()
	return nil
}

// sync looks at the newest state of one pod and starts what it asks for.
func (k *kubelet) sync(ctx context.Context, o *v1.Pod) {
	if o == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()

	p := k.pods[o.UID]
	switch {
	case o.DeletionTimestamp != nil && p != nil:
		p.delete(o)

	case o.DeletionTimestamp != nil:
		// Bound, but never started here: there is nothing to end.
		go k.remove(ctx, o.Namespace, o.Name, o.UID, nil)

	case o.Spec.NodeName == "" && !k.binding[o.UID]:
		k.binding[o.UID] = true
		node := k.nodes[k.turn%len(k.nodes)]
		k.turn++
		go k.bind(ctx, o, node)

	case o.Spec.NodeName != "" && p == nil:
		delete(k.binding, o.UID)
		k.adopt(ctx, o)
	}
}

// adopt gives the pod an address and its life. The lock is held.
func (k *kubelet) adopt(ctx context.Context, o *v1.Pod) {
	addr, err := k.allocate(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "kubelet: %s/%s: %v\n", o.Namespace, o.Name,
			err)
		return
	}

	p := &pod{
		namespace: o.Namespace,
		name:      o.Name,
		uid:       o.UID,
		addr:      addr,
		start:     annotation(o, annotationStart, defaultStart),
		grace:     annotation(o, annotationGrace, defaultGrace),
		terminate: make(chan struct{}),
		gone:      make(chan struct{}),
	}
	for _, c := range o.Spec.Containers {
		for _, port := range c.Ports {
			if port.Protocol == v1.ProtocolTCP || port.Protocol == "" {
				p.ports = append(p.ports, port.ContainerPort)
			}
		}
	}
	k.pods[o.UID] = p
	go k.live(ctx, p)
}

// allocate returns the address the pod already has, or the next free one, so
// that an address comes back as late as possible. The lock is held.
func (k *kubelet) allocate(o *v1.Pod) (netip.Addr, error) {
	if o.Status.PodIP != "" {
		addr, err := netip.ParseAddr(o.Status.PodIP)
		if err == nil {
			k.used[addr] = o.UID
		}
		return addr, err
	}

	for tries := 0; tries < 1<<16; tries++ {
		addr := k.next
		k.next = k.next.Next()
		if !k.subnet.Contains(k.next) {
			k.next = k.first
		}
		last := addr.As4()[3]
		if _, taken := k.used[addr]; taken || last == 0 || last == 255 {
			continue
		}
		k.used[addr] = o.UID
		return addr, nil
	}
	return netip.Addr{}, errors.New("no pod address is left")
}

// forget is told that the object is away: by our own delete, by a forced one,
// or by a list after an outage.
func (k *kubelet) forget(o *v1.Pod) {
	if o == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()

	delete(k.binding, o.UID)
	if p := k.pods[o.UID]; p != nil {
		p.goneOne.Do(func() { close(p.gone) })
	}
}

// delete notes the deletion once, with the time preStop takes; as in a real
// node it cannot outlast the pod's termination grace.
func (p *pod) delete(o *v1.Pod) {
	p.deleteOne.Do(func() {
		p.preStop = annotation(o, annotationPreStop, defaultPreStop)
		if s := o.DeletionGracePeriodSeconds; s != nil {
			p.preStop = min(p.preStop, time.Duration(*s)*time.Second)
		}
		close(p.terminate)
	})
}

// live is the pod's life, from its binding to the end of its object.
func (k *kubelet) live(ctx context.Context, p *pod) {
	server := newPodServer(p.name)
	defer server.close()
	defer k.release(p)

	if p.wait(ctx, p.start, p.terminate) {
		err := server.listen(p.addr.String(), p.ports)
		if err != nil {
			fmt.Fprintf(os.Stderr, "kubelet: %s: %v\n", p.name, err)
		} else {
			go k.patchStatus(ctx, p, v1.ConditionTrue)
		}
		select {
		case <-p.terminate:
		case <-p.gone:
		case <-ctx.Done():
			return
		}
	}

	// Readiness stays as it is during preStop, and so the slice shows
	// serving and terminating until the listener closes.
	select {
	case <-p.terminate:
		p.wait(ctx, p.preStop, nil)
	default:
	}
	server.stopListening()
	go k.patchStatus(ctx, p, v1.ConditionFalse)
	server.drain(p.grace)
	k.remove(ctx, p.namespace, p.name, p.uid, p.gone)
}

// wait sleeps for d and says whether it came to its end: the pod still exists
// and nothing came through early.
func (p *pod) wait(ctx context.Context, d time.Duration,
	early <-chan struct{}) bool {

	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-early:
	case <-p.gone:
	case <-ctx.Done():
	}
	return false
}

func (k *kubelet) release(p *pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.used[p.addr] == p.uid {
		delete(k.used, p.addr)
	}
	delete(k.pods, p.uid)
}

func (k *kubelet) bind(ctx context.Context, o *v1.Pod, node string) {
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID,
		},
		Target: v1.ObjectReference{Kind: "Node", Name: node},
	}
	k.retry(ctx, "bind "+o.Name, nil, func() error {
		err := k.client.CoreV1().Pods(o.Namespace).Bind(ctx, binding,
			metav1.CreateOptions{})
		return ignoreConflict(err)
	})
}

// patchStatus reports the pod running, and ready or not.
func (k *kubelet) patchStatus(ctx context.Context, p *pod,
	ready v1.ConditionStatus) {

	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind v1.PodConditionType, s v1.ConditionStatus) any {
		return map[string]any{"type": kind, "status": s,
			"lastTransitionTime": now}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.uid},
		"status": map[string]any{
			"phase":     v1.PodRunning,
			"podIP":     p.addr.String(),
			"podIPs":    []any{map[string]any{"ip": p.addr.String()}},
			"startTime": now,
			"conditions": []any{
				condition(v1.PodInitialized, v1.ConditionTrue),
				condition(v1.ContainersReady, ready),
				condition(v1.PodReady, ready),
			},
		},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "kubelet: %v\n", err)
		return
	}

	p.status.Lock()
	defer p.status.Unlock()
	obsolete := p.terminate
	if ready == v1.ConditionFalse {
		obsolete = p.gone
	}
	k.retry(ctx, "status "+p.name, obsolete, func() error {
		_, err := k.client.CoreV1().Pods(p.namespace).Patch(ctx, p.name,
			types.StrategicMergePatchType, patch, metav1.PatchOptions{},
			"status")
		return err
	})
}

// remove deletes the object, as a kubelet does when all has ended.
func (k *kubelet) remove(ctx context.Context, namespace, name string,
	uid types.UID, obsolete <-chan struct{}) {

	zero := int64(0)
	k.retry(ctx, "delete "+name, obsolete, func() error {
		err := k.client.CoreV1().Pods(namespace).Delete(ctx, name,
			metav1.DeleteOptions{
				GracePeriodSeconds: &zero,
				Preconditions:      &metav1.Preconditions{UID: &uid},
			})
		return ignoreConflict(err)
	})
}

// retry repeats a request until it is done, has lost its object, or is
// obsolete: an API server that is away is waited for.
func (k *kubelet) retry(ctx context.Context, what string,
	obsolete <-chan struct{}, request func() error) {

	for delay := retryFirst; ; delay = min(2*delay, retryMax) {
		err := request()
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		fmt.Fprintf(os.Stderr, "kubelet: %s: %v\n", what, err)
		if apierrors.IsInvalid(err) {
			return
		}
		select {
		case <-time.After(delay):
		case <-obsolete:
			return
		case <-ctx.Done():
			return
		}
	}
}

// ignoreConflict is for requests that name the object's UID, or that were done
// already when the answer got lost: there a conflict means nothing is left to
// do.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// annotation reads a duration in milliseconds, within bounds.
func annotation(o *v1.Pod, name string, missing time.Duration) time.Duration {
	text, ok := o.Annotations[name]
	if !ok {
		return missing
	}
	ms, err := strconv.ParseInt(text, 10, 32)
	if err != nil || ms < 0 {
		fmt.Fprintf(os.Stderr, "kubelet: %s: %s=%q is no number\n", o.Name,
			name, text)
		return missing
	}
	return min(time.Duration(ms)*time.Millisecond, annotationMax)
}
