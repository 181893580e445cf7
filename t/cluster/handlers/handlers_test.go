// handlers: what client-go's handlers are told of a script of changes. For
// t/proof/test_handlers.py only, which compares it with ours (handlers.c says
// what a script is). Time is synctest's: no sleep takes any.
//
//	KUBE_SCRIPT=in KUBE_STREAM=out go test ./handlers
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package handlers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
)

type stream struct {
	mu  sync.Mutex
	out *bufio.Writer
}

func (s *stream) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...)
}

func handler(s *stream, name string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			o := obj.(*corev1.Service)
			s.say("%s + %s %d %t\n", name, o.Name, o.Generation, initial)
		},
		UpdateFunc: func(before, after any) {
			o, n := before.(*corev1.Service), after.(*corev1.Service)
			s.say("%s ~ %s %d %d\n", name, o.Name, o.Generation, n.Generation)
		},
		DeleteFunc: func(obj any) {
			unknown := false
			if u, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj, unknown = u.Obj, true
			}
			o := obj.(*corev1.Service)
			s.say("%s - %s %d %t\n", name, o.Name, o.Generation, unknown)
		},
	}
}

func TestStream(t *testing.T) {
	if os.Getenv("KUBE_SCRIPT") == "" {
		t.Skip("KUBE_SCRIPT names no script")
	}
	script, err := os.ReadFile(os.Getenv("KUBE_SCRIPT"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(os.Getenv("KUBE_STREAM"))
	if err != nil {
		t.Fatal(err)
	}
	out := &stream{out: bufio.NewWriter(file)}
	synctest.Test(t, func(t *testing.T) { run(t, string(script), out) })
	if err := out.out.Flush(); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, script string, out *stream) {
	source := fcache.NewFakeControllerSource()
	informer := cache.NewSharedIndexInformer(source, &corev1.Service{}, time.Hour, cache.Indexers{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	registrations := map[string]cache.ResourceEventHandlerRegistration{}
	held := map[string]*corev1.Service{}
	barriers := 0
	for line := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
		words := strings.Fields(line)
		switch words[0] {
		case "p", "P":
			generation, err := strconv.ParseInt(words[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			before := held[words[1]]
			o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: words[1], UID: types.UID("u" + words[2]), Generation: generation}}
			if before != nil {
				o.UID = before.UID
			}
			held[words[1]] = o
			switch {
			case words[0] == "P" && before == nil:
				source.AddDropWatch(o)
			case words[0] == "P":
				source.ModifyDropWatch(o)
			case before == nil:
				source.Add(o)
			default:
				source.Modify(o)
			}
		case "d", "D":
			o := held[words[1]].DeepCopy()
			delete(held, words[1])
			if words[0] == "D" {
				source.DeleteDropWatch(o)
			} else {
				source.Delete(o)
			}
		case "r":
			source.ResetWatch()
			time.Sleep(2 * time.Minute)
		case "s":
			time.Sleep(15 * time.Second)
		case "a":
			h := handler(out, words[1])
			if words[2] == "odd" {
				h = cache.FilteringResourceEventHandler{Handler: h, FilterFunc: func(obj any) bool {
					if u, ok := obj.(cache.DeletedFinalStateUnknown); ok {
						obj = u.Obj
					}
					return obj.(*corev1.Service).Generation%2 == 1
				}}
			}
			period := time.Duration(0)
			if words[2] == "resync" {
				period = 10 * time.Second
			}
			r, err := informer.AddEventHandlerWithResyncPeriod(h, period)
			if err != nil {
				t.Fatal(err)
			}
			registrations[words[1]] = r
		case "x":
			if err := informer.RemoveEventHandler(registrations[words[1]]); err != nil {
				t.Fatal(err)
			}
		case "!":
			wg.Go(func() { informer.RunWithContext(ctx) })
		case "w":
			synctest.Wait()
			barriers++
			out.say("= %d\n", barriers)
		}
	}
	cancel()
	wg.Wait()
	source.Shutdown()
}
