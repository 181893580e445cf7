// swap: how long after the API server's event does each worker route by it? An
// EndpointSlice is changed through the API again and again; a bare watch over
// TLS stamps the arrival of each event, and probers see, worker by worker, the
// first answer from the new address.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const swapPause = 40 * time.Millisecond

type swapper struct {
	namespace string
	service   string
	slice     string
	addresses []netip.AddrPort
	client    kubernetes.Interface
	watch     *bareWatch
	probes    *probeSet
	limit     time.Duration

	raw      map[string][]float64 // by worker, ms after the watch's stamp
	applied  []float64            // ms from request to watch, for scale
	missed   int
	failures []string
}

func runSwap(ctx context.Context, args []string) error {
	s := newService("swap")
	w := &swapper{raw: map[string][]float64{}}
	kubeconfig := s.flags.String("kubeconfig", "", "kubeconfig")
	s.flags.StringVar(&w.namespace, "namespace", "default", "of the slice")
	s.flags.StringVar(&w.service, "service", "", "the slice's Service")
	s.flags.StringVar(&w.slice, "slice", "", "the slice to change")
	target := s.flags.String("target", "", "http://host:port/path of nginx")
	host := s.flags.String("host", "", "Host header")
	swaps := s.flags.Int("swaps", 60, "how many changes are timed")
	addresses := s.flags.String("addresses", "", "two backends, a:p,b:p")
	workers := s.flags.Int("workers", 2, "values of X-Worker-Pid to wait for")
	perWorker := s.flags.Int("per-worker", 1, "probing connections of each")
	pause := s.flags.Duration("pause", 250*time.Microsecond,
		"between a prober's requests")
	s.flags.DurationVar(&w.limit, "limit", 5*time.Second,
		"for one swap to show")
	if err := s.parse(args); err != nil {
		return err
	}
	if err := w.parseAddresses(*addresses); err != nil {
		return err
	}

	// A thread that blocks in a system call keeps its processor for a
	// while; there must be one left for the watch, at any time.
	runtime.GOMAXPROCS(8 + *workers**perWorker)

	for _, a := range w.addresses {
		server := newPodServer(a.String())
		err := server.listen(a.Addr().String(), []int32{int32(a.Port())})
		if err != nil {
			return err
		}
		defer server.close()
	}
	if err := w.connect(*kubeconfig); err != nil {
		return err
	}
	defer w.watch.close()
	if err := w.patch(ctx, w.addresses[0]); err != nil {
		return err
	}

	u, err := url.Parse(*target)
	if err != nil {
		return err
	}
	w.probes, err = newProbeSet(u, *host, *workers, *perWorker, *pause)
	if err != nil {
		return err
	}
	err = w.run(ctx, *swaps)
	w.probes.stop()
	if err != nil {
		return err
	}
	printJSON(w.report())
	return nil
}

func (w *swapper) parseAddresses(text string) error {
	for _, t := range list(text) {
		a, err := netip.ParseAddrPort(t)
		if err != nil {
			return err
		}
		w.addresses = append(w.addresses, a)
	}
	if len(w.addresses) != 2 || w.addresses[0] == w.addresses[1] {
		return errors.New("-addresses: two different ones, please")
	}
	return require(map[string]string{
		"service": w.service, "slice": w.slice,
	})
}

func (w *swapper) connect(kubeconfig string) error {
	cfg, err := clientConfig(kubeconfig)
	if err != nil {
		return err
	}
	if w.client, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	w.watch, err = openWatch(cfg, w.namespace, w.slice)
	return err
}

// patch makes the address the slice's only one.
func (w *swapper) patch(ctx context.Context, a netip.AddrPort) error {
	slices := w.client.DiscoveryV1().EndpointSlices(w.namespace)
	old, err := slices.Get(ctx, w.slice, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got := old.Labels["kubernetes.io/service-name"]; got != w.service {
		return fmt.Errorf("slice %s is of service %q", w.slice, got)
	}
	if len(old.Ports) != 1 {
		return fmt.Errorf("slice %s has %d ports", w.slice, len(old.Ports))
	}
	port := map[string]any{"port": a.Port(), "protocol": "TCP"}
	if name := old.Ports[0].Name; name != nil {
		port["name"] = *name
	}
	body, err := json.Marshal(map[string]any{
		"endpoints": []any{map[string]any{
			"addresses":  []string{a.Addr().String()},
			"conditions": map[string]any{"ready": true},
		}},
		"ports": []any{port},
	})
	if err != nil {
		return err
	}
	_, err = slices.Patch(ctx, w.slice, types.MergePatchType, body,
		metav1.PatchOptions{})
	return err
}

// run waits until all workers answer from the first address, and swaps.
func (w *swapper) run(ctx context.Context, swaps int) error {
	w.probes.expect(w.addresses[0].String())
	if late := w.probes.wait(ctx, 30*time.Second); len(late) > 0 {
		return fmt.Errorf("not served from %s: workers %v",
			w.addresses[0], late)
	}
	w.probes.startCounting()
	ready(map[string]any{"workers": w.probes.workers()})

	for i := 1; i <= swaps && ctx.Err() == nil; i++ {
		// Not in step with anything periodic on this machine.
		nap(swapPause + rand.N(swapPause))
		if err := w.swap(ctx, w.addresses[i%2]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (w *swapper) swap(ctx context.Context, to netip.AddrPort) error {
	w.watch.drain()
	w.probes.expect(to.String())
	sent := time.Now()
	if err := w.patch(ctx, to); err != nil {
		return err
	}
	stamp, err := w.watch.next(to.Addr().String(), int(to.Port()), w.limit)
	if err != nil {
		return err
	}
	w.applied = append(w.applied, signedMs(stamp.Sub(sent)))

	late := w.probes.wait(ctx, w.limit)
	for _, worker := range late {
		w.missed++
		w.failures = append(w.failures,
			fmt.Sprintf("worker %s never answered from %s", worker, to))
	}
	for worker, seen := range w.probes.seen() {
		w.raw[worker] = append(w.raw[worker], signedMs(seen.Sub(stamp)))
	}
	return nil
}

func (w *swapper) report() map[string]any {
	byWorker := map[string]any{}
	var all []float64
	for worker, values := range w.raw {
		all = append(all, values...)
		byWorker[worker] = distribution(values)
	}
	probes := w.probes.report()
	return map[string]any{
		"swaps": len(w.applied), "missed": w.missed,
		"failures": append(w.failures, w.probes.failures()...),
		"overall":  distribution(all), "workers": byWorker,
		"probes": probes, "raw_ms": w.raw,
		"api_to_watch": distribution(w.applied),
	}
}

func signedMs(d time.Duration) float64 {
	return float64(d.Nanoseconds()/1000) / 1000
}

// hostPort is the address to connect to.
func hostPort(u *url.URL) (netip.AddrPort, error) {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return netip.ParseAddrPort(net.JoinHostPort(u.Hostname(), port))
}
