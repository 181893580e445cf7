// lists: an EndpointSliceList and a ServiceList as an API server writes them,
// with its own types and serializers, for the programs of bench. For benchmarks
// only.
//
//	go run ./lists -slices 10000 -endpoints 10 -events 10000 -dir /tmp/lists
//
// With -events also both lists in protobuf, both as the beginning of a watch
// with sendInitialEvents, in JSON and protobuf (services.stream.json ..), and
// so many events, each an endpoint more or less (events.json, events.pb).
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	sliceFields = `{"f:addressType":{},"f:endpoints":{},"f:metadata":` +
		`{"f:annotations":{".":{},"f:endpoints.kubernetes.io/last-change-trigger-time":{}},` +
		`"f:generateName":{},"f:labels":{".":{},"f:app":{},` +
		`"f:endpointslice.kubernetes.io/managed-by":{},"f:kubernetes.io/service-name":{}},` +
		`"f:ownerReferences":{".":{},"k:{\"uid\":\"%s\"}":{}}},"f:ports":{}}`
	serviceFields = `{"f:metadata":{"f:annotations":{".":{},` +
		`"f:kubectl.kubernetes.io/last-applied-configuration":{}},` +
		`"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:internalTrafficPolicy":{},` +
		`"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},` +
		`"f:port":{},"f:protocol":{},"f:targetPort":{}}},"f:selector":{},` +
		`"f:sessionAffinity":{},"f:type":{}}}`
	applied = `{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{},` +
		`"labels":{"app":"%[1]s"},"name":"%[1]s","namespace":"%[2]s"},"spec":{"ports":` +
		`[{"name":"http","port":80,"targetPort":8080}],"selector":{"app":"%[1]s"}}}` + "\n"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func uid(kind, i int) types.UID {
	h := uint64(kind)<<32 | uint64(i)
	h *= 0x9e3779b97f4a7c15
	h ^= h >> 29
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", uint32(h), uint16(h>>32),
		uint16(h>>48)&0xfff, uint16(h>>20)&0xfff, (h*0xbf58476d1ce4e5b9)>>16))
}

func managed(by, fields string, at time.Time) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: by, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		Time: &metav1.Time{Time: at}, FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}}
}

func namespace(i int) string { return fmt.Sprintf("team-%02d", i%40) }

func service(i int) string { return fmt.Sprintf("service-%05d", i) }

func endpoint(i, k, n int) discoveryv1.Endpoint {
	number := i*n + k
	yes, no := true, false
	node := fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", number%500/250, number%250)
	zone := "eu-central-1" + string(rune('a'+number%3))
	return discoveryv1.Endpoint{
		Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 64+number>>16, number>>8&255,
			number&255)},
		Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes,
			Terminating: &no},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace(i),
			Name: fmt.Sprintf("%s-7d4b9c8f6d-%05x", service(i), number&0xfffff),
			UID:  uid(3, number)},
		NodeName: &node,
		Zone:     &zone,
		Hints:    &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}},
	}
}

func slice(i, endpoints int, fields bool) discoveryv1.EndpointSlice {
	name, port, protocol, yes := "http", int32(8080), corev1.ProtocolTCP, true
	at := began.Add(time.Duration(i) * time.Second)
	s := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%05x", service(i), i), GenerateName: service(i) + "-",
			Namespace: namespace(i), UID: uid(2, i),
			ResourceVersion: strconv.Itoa(200000 + i), Generation: int64(3 + i%9),
			CreationTimestamp: metav1.Time{Time: at},
			Labels: map[string]string{"app": service(i),
				"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
				"kubernetes.io/service-name":             service(i)},
			Annotations: map[string]string{
				"endpoints.kubernetes.io/last-change-trigger-time": at.Format(time.RFC3339)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service",
				Name: service(i), UID: uid(1, i), Controller: &yes,
				BlockOwnerDeletion: &yes}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port,
			Protocol: &protocol}},
	}
	if fields {
		s.ManagedFields = managed("kube-controller-manager",
			fmt.Sprintf(sliceFields, uid(1, i)), at)
	}
	for k := 0; k < endpoints; k++ {
		s.Endpoints = append(s.Endpoints, endpoint(i, k, endpoints))
	}
	return s
}

func oneService(i int, fields bool) corev1.Service {
	ip := fmt.Sprintf("10.%d.%d.%d", 32+i>>16, i>>8&255, i&255)
	policy, internal := corev1.IPFamilyPolicySingleStack, corev1.ServiceInternalTrafficPolicyCluster
	at := began.Add(time.Duration(i) * time.Second)
	s := corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service(i), Namespace: namespace(i), UID: uid(1, i),
			ResourceVersion: strconv.Itoa(100000 + i), CreationTimestamp: metav1.Time{Time: at},
			Labels: map[string]string{"app": service(i)},
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": fmt.Sprintf(
				applied, service(i), namespace(i))},
		},
		Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80,
				TargetPort: intstr.FromInt32(8080)}},
			Selector: map[string]string{"app": service(i)}, ClusterIP: ip,
			ClusterIPs: []string{ip}, Type: corev1.ServiceTypeClusterIP,
			SessionAffinity: corev1.ServiceAffinityNone,
			IPFamilies:      []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: &policy,
			InternalTrafficPolicy: &internal,
		},
	}
	if fields {
		s.ManagedFields = managed("kubectl-client-side-apply", serviceFields, at)
	}
	return s
}

// serializer writes what the server's does: json, or pb.
func serializer(form string) runtime.Encoder {
	if form == "pb" {
		scheme := runtime.NewScheme()
		return protobuf.NewSerializer(scheme, scheme)
	}
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil,
		json.SerializerOptions{})
}

func write(dir, name, form string, body func(w io.Writer) error) {
	file, err := os.Create(filepath.Join(dir, name+"."+form))
	if err != nil {
		log.Fatal(err)
	}
	w := bufio.NewWriterSize(file, 1<<20)
	if err = body(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		log.Fatal(err)
	}
}

func writeList(dir, name, form string, list runtime.Object) {
	write(dir, name, form, func(w io.Writer) error { return serializer(form).Encode(list, w) })
}

// event writes one as a watch does: a line, or a length and a bare WatchEvent.
func event(w io.Writer, form string, kind string, obj runtime.Object) error {
	var raw bytes.Buffer
	if err := serializer(form).Encode(obj, &raw); err != nil {
		return err
	}
	if form == "json" {
		_, err := fmt.Fprintf(w, "{\"type\":\"%s\",\"object\":%s}\n", kind,
			bytes.TrimSpace(raw.Bytes()))
		return err
	}
	e := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw.Bytes()}}
	text, err := e.Marshal()
	if err == nil {
		err = binary.Write(w, binary.BigEndian, uint32(len(text)))
	}
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// mark is the bookmark that ends what a watch begins with.
func mark(obj interface {
	runtime.Object
	metav1.Object
}) runtime.Object {
	obj.SetResourceVersion("900000")
	obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return obj
}

var (
	sliceKind   = metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"}
	serviceKind = metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}
)

func writeStreams(dir, form string, ss *discoveryv1.EndpointSliceList, sv *corev1.ServiceList,
	events int) {
	write(dir, "slices.stream", form, func(w io.Writer) error {
		for i := range ss.Items {
			s := ss.Items[i]
			s.TypeMeta = sliceKind
			if err := event(w, form, "ADDED", &s); err != nil {
				return err
			}
		}
		return event(w, form, "BOOKMARK", mark(&discoveryv1.EndpointSlice{TypeMeta: sliceKind}))
	})
	write(dir, "services.stream", form, func(w io.Writer) error {
		for i := range sv.Items {
			s := sv.Items[i]
			s.TypeMeta = serviceKind
			if err := event(w, form, "ADDED", &s); err != nil {
				return err
			}
		}
		return event(w, form, "BOOKMARK", mark(&corev1.Service{TypeMeta: serviceKind}))
	})
	write(dir, "events", form, func(w io.Writer) error {
		for i := 1; i <= events && len(ss.Items) > 0; i++ {
			s := ss.Items[i%len(ss.Items)]
			s.TypeMeta = sliceKind
			s.ResourceVersion = strconv.Itoa(900000 + i)
			if n := len(s.Endpoints); n > 1 && i/len(ss.Items)%2 == 0 {
				s.Endpoints = s.Endpoints[:n-1]
			}
			if err := event(w, form, "MODIFIED", &s); err != nil {
				return err
			}
		}
		return nil
	})
}

func main() {
	slices := flag.Int("slices", 10000, "slices, and Services")
	endpoints := flag.Int("endpoints", 10, "of a slice")
	fields := flag.Bool("managed-fields", true, "with managedFields")
	events := flag.Int("events", 0, "events; 0: the lists in JSON alone")
	dir := flag.String("dir", ".", "where the files go")
	flag.Parse()

	ss := &discoveryv1.EndpointSliceList{}
	ss.Kind, ss.APIVersion = "EndpointSliceList", "discovery.k8s.io/v1"
	ss.ResourceVersion = "900000"
	sv := &corev1.ServiceList{}
	sv.Kind, sv.APIVersion = "ServiceList", "v1"
	sv.ResourceVersion = "900000"
	for i := 0; i < *slices; i++ {
		ss.Items = append(ss.Items, slice(i, *endpoints, *fields))
		sv.Items = append(sv.Items, oneService(i, *fields))
	}
	writeList(*dir, "slices", "json", ss)
	writeList(*dir, "services", "json", sv)
	if *events == 0 {
		return
	}
	writeList(*dir, "slices", "pb", ss)
	writeList(*dir, "services", "pb", sv)
	for _, form := range []string{"json", "pb"} {
		writeStreams(*dir, form, ss, sv, *events)
	}
}
