// decode: what Go's own types make of the texts that test_decode_oracle dumped,
// against what kube_decode made of them. For tests only.
//
//	KUBE_DECODE_DUMP=dump build/asan/unit/test_decode_oracle
//	cd t/cluster && go run ./decode dump
//
// A line of the dump has six fields: where the text is from (case, lax or
// random), the resource, 1 if it was taken, how many parts were left out, the
// text in hexadecimal, and the object as decode_print() writes it. That of
// test_decode_message has messages, whose resource ends in ".pb", and of what
// was refused the reason.
//
// Where Go decodes a text, kube_decode must make the same of it, or refuse it
// for a reason that is none of JSON's (a name that is none, a control byte in
// the label). Where Go refuses it, kube_decode must have refused the object or
// left out a part, unless the case is lax: then what Go dislikes is not used.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

var (
	label     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	subdomain = regexp.MustCompile(
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	version = regexp.MustCompile(`^[1-9][0-9]{0,39}$`)
)

const (
	serviceLabel = "kubernetes.io/service-name"
	maxEndpoints = 1000
	maxPorts     = 20000
)

// projection is what routing needs of an object, and how much was left out.
type projection struct {
	text    strings.Builder
	dropped int
	refused bool
}

func isLabel(s string) bool {
	return len(s) <= 63 && label.MatchString(s)
}

func printable(s string, max int) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= max
}

func (p *projection) shown(s *string) string {
	if s == nil || *s == "" {
		return ""
	}
	if !printable(*s, 253) {
		p.dropped++
		return ""
	}
	return *s
}

func (p *projection) meta(t metav1.TypeMeta, m metav1.ObjectMeta, kind,
	apiVersion string, name bool) {
	if (t.Kind != "" && t.Kind != kind) ||
		(t.APIVersion != "" && t.APIVersion != apiVersion) ||
		!isLabel(m.Namespace) || !name || !printable(string(m.UID), 128) ||
		!version.MatchString(m.ResourceVersion) {
		p.refused = true
	}
	fmt.Fprintf(&p.text, "%s/%s uid=%s rv=%s", m.Namespace, m.Name, m.UID,
		m.ResourceVersion)
}

func (p *projection) port(name, protocol string, number int32,
	app *string, required bool) {
	shown := p.shown(app)
	if (name != "" && !isLabel(name)) ||
		(protocol != "TCP" && protocol != "UDP" && protocol != "SCTP") ||
		number < 0 || number > 65535 || (required && number == 0) {
		p.dropped++
		return
	}
	fmt.Fprintf(&p.text, "%s|%s|%d|%s;", name, protocol, number, shown)
}

func address(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Zone() == ""
}

func (p *projection) service(s *corev1.Service) {
	p.meta(s.TypeMeta, s.ObjectMeta, "Service", "v1", isLabel(s.Name))

	kind := s.Spec.Type
	switch kind {
	case "":
		kind = corev1.ServiceTypeClusterIP
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName:
	default:
		p.refused = true
	}

	ips := s.Spec.ClusterIPs
	if len(ips) == 0 {
		ips = []string{s.Spec.ClusterIP}
	}
	headless, list, n := 0, "", 0
	for _, ip := range ips {
		a, good := address(ip)
		switch {
		case ip == "":
		case ip == "None":
			headless = 1
		case !good || n == 2:
			p.dropped++
		default:
			list += a.String() + ";"
			n++
		}
	}

	family := 0
	if len(s.Spec.IPFamilies) != 0 {
		switch s.Spec.IPFamilies[0] {
		case corev1.IPv4Protocol:
			family = 4
		case corev1.IPv6Protocol:
			family = 6
		default:
			p.dropped++
		}
	}
	fmt.Fprintf(&p.text, " type=%s headless=%d family=%d ips=%s ports=", kind,
		headless, family, list)

	for _, port := range s.Spec.Ports {
		protocol := string(port.Protocol)
		if protocol == "" {
			protocol = "TCP"
		}
		p.port(port.Name, protocol, port.Port, port.AppProtocol, true)
	}
}

func (p *projection) slice(s *discoveryv1.EndpointSlice) {
	p.meta(s.TypeMeta, s.ObjectMeta, "EndpointSlice", "discovery.k8s.io/v1",
		len(s.Name) <= 253 && subdomain.MatchString(s.Name))

	family := map[discoveryv1.AddressType]int{
		discoveryv1.AddressTypeIPv4: 4, discoveryv1.AddressTypeIPv6: 6,
		discoveryv1.AddressTypeFQDN: 0}
	bits, known := family[s.AddressType]
	service := s.Labels[serviceLabel]
	for i := 0; i < len(service); i++ {
		if service[i] < 0x20 || service[i] == 0x7f {
			p.refused = true
		}
	}
	if !isLabel(service) {
		service = ""
	}
	if !known || len(s.Endpoints) > maxEndpoints || len(s.Ports) > maxPorts {
		p.refused = true
	}
	fmt.Fprintf(&p.text, " service=%s family=%d ports=", service, bits)

	for _, port := range s.Ports {
		name, protocol, number := "", "TCP", int32(0)
		if port.Name != nil {
			name = *port.Name
		}
		if port.Protocol != nil {
			protocol = string(*port.Protocol)
		}
		if port.Port != nil {
			number = *port.Port
			if number == 0 {
				number = -1
			}
		}
		p.port(name, protocol, number, port.AppProtocol, false)
	}

	fmt.Fprint(&p.text, " endpoints=")
	for _, e := range s.Endpoints {
		p.endpoint(e, bits)
	}
}

func (p *projection) endpoint(e discoveryv1.Endpoint, bits int) {
	condition := func(b *bool, otherwise int) int {
		if b == nil {
			return otherwise
		}
		if *b {
			return 1
		}
		return 0
	}
	pod := ""
	if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
		pod = p.shown(&e.TargetRef.Name)
	}
	node, zone := p.shown(e.NodeName), p.shown(e.Zone)
	if bits == 0 {
		return
	}

	first := ""
	if len(e.Addresses) != 0 {
		first = e.Addresses[0]
	}
	a, good := address(first)
	if !good || a.Is4() != (bits == 4) {
		p.dropped++
		return
	}
	fmt.Fprintf(&p.text, "%s|%d%d%d|%s|%s|%s;", a,
		condition(e.Conditions.Ready, 1), condition(e.Conditions.Serving, 1),
		condition(e.Conditions.Terminating, 0), pod, node, zone)
}

// project decodes text as client-go does, which minds the case of names.
func project(resource string, text []byte) (*projection, error) {
	p := &projection{}
	switch resource {
	case "services.pb":
		var s corev1.Service
		if err := s.Unmarshal(text); err != nil {
			return nil, err
		}
		p.service(&s)
		return p, nil
	case "endpointslices.pb":
		var s discoveryv1.EndpointSlice
		if err := s.Unmarshal(text); err != nil {
			return nil, err
		}
		p.slice(&s)
		return p, nil
	}
	if resource == "services" {
		var s corev1.Service
		if err := json.UnmarshalCaseSensitivePreserveInts(text, &s); err != nil {
			return nil, err
		}
		p.service(&s)
		return p, nil
	}
	var s discoveryv1.EndpointSlice
	if err := json.UnmarshalCaseSensitivePreserveInts(text, &s); err != nil {
		return nil, err
	}
	p.slice(&s)
	return p, nil
}

// walks has what kube_decode says of a message whose fields do not fill it. Go
// is laxer with entries of maps alone: their keys and values may be of another
// wire type, or go beyond the entry.
var walks = map[string]bool{
	"a field goes beyond its message": true,
	"a field of the wrong wire type":  true,
	"a field without a number":        true,
	"an unknown wire type":            true,
	"a number of more than ten bytes": true,
}

// isTwice says whether a member is given twice: where the first value is bad by
// no rule of Go's, kube_decode has left the part out already.
func isTwice(resource string, text []byte) bool {
	var object any = &discoveryv1.EndpointSlice{}
	if resource == "services" {
		object = &corev1.Service{}
	}
	strict, _ := json.UnmarshalStrict(text, object)
	for _, err := range strict {
		if strings.Contains(err.Error(), "duplicate field") {
			return true
		}
	}
	return false
}

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)

	same, refused, partial, unused, twice, strict, bad := 0, 0, 0, 0, 0, 0, 0
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		if f[1] == "endpoints.pb" {
			continue // no projection of these here: test_decode_message has JSON's
		}
		text, _ := hex.DecodeString(f[4])
		p, err := project(f[1], text)
		taken := f[2] == "1"
		wrong := ""

		switch {
		case err != nil && !taken:
			refused++
		case err != nil && f[3] != "0":
			partial++
		case err != nil && f[0] != "case":
			unused++
		case err != nil:
			wrong = "Go: " + err.Error()
		case f[0] == "random" && !taken && !p.refused && walks[f[5]]:
			strict++
		case p.refused != !taken:
			wrong = fmt.Sprintf("refused: %v", p.refused)
		case p.refused:
			refused++
		case p.text.String() != f[5]:
			wrong = "Go: " + p.text.String() + "\nus: " + f[5]
		case f[0] == "case" && fmt.Sprint(p.dropped) != f[3]:
			wrong = fmt.Sprintf("dropped %d, not %s", p.dropped, f[3])
		default:
			same++
		}
		if wrong != "" && f[0] == "random" && isTwice(f[1], text) {
			twice++
		} else if wrong != "" {
			bad++
			if bad <= 20 {
				fmt.Printf("%s %s\n%s\n\n", f[0], text, wrong)
			}
		}
	}

	fmt.Printf("%d the same, %d refused, %d in part, %d with what only Go "+
		"dislikes, %d with a bad value before a good one, %d with an entry of "+
		"a map that Go reads beyond its end, %d different\n",
		same, refused, partial, unused, twice, strict, bad)
	if bad != 0 || same == 0 {
		os.Exit(1)
	}
}
