// The API server: kube-apiserver itself, with the flags a namespace without a
// default route needs, and the files its clients start from.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientcmd "k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// tokenList collects -token NAME=TOKEN[:GROUP]; a name may hold colons.
type tokenList []string

func (t *tokenList) String() string {
	return strings.Join(*t, " ")
}

func (t *tokenList) Set(value string) error {
	name, rest, ok := strings.Cut(value, "=")
	if !ok || name == "" || rest == "" || strings.ContainsAny(value, ",\"\n") {
		return fmt.Errorf("%q is not NAME=TOKEN[:GROUP]", value)
	}
	token, group, _ := strings.Cut(rest, ":")
	*t = append(*t, fmt.Sprintf("%s,%q,%q,%q\n", token, name, name, group))
	return nil
}

type apiServer struct {
	pki
	etcd      string
	advertise string
	bind      string
	port      int
	token     string
	extra     tokenList
	more      []string // further kube-apiserver flags
}

func runAPIServer(ctx context.Context, args []string) error {
	s := newService("apiserver")
	a := &apiServer{}
	s.flags.StringVar(&a.etcd, "etcd", "http://127.0.0.1:2379", "etcd URL")
	s.flags.StringVar(&a.dir, "dir", "", "directory for keys and kubeconfigs")
	s.flags.StringVar(&a.advertise, "advertise", "10.244.0.1",
		"the address clients are told")
	s.flags.StringVar(&a.bind, "bind", "0.0.0.0",
		"the address to listen on; all by default, so that packets to one "+
			"of them can be dropped while others go on")
	s.flags.IntVar(&a.port, "port", 6443, "port")
	s.flags.Var(&a.extra, "token", "NAME=TOKEN[:GROUP], may be repeated")
	if err := s.parse(args); err != nil {
		return err
	}
	if err := require(map[string]string{"dir": a.dir}); err != nil {
		return err
	}
	a.more = s.flags.Args()

	if err := a.prepare(); err != nil {
		return err
	}

	failed := make(chan error, 1)
	cmd := app.NewAPIServerCommand()
	cmd.SetArgs(a.args())
	go func() {
		err := cmd.ExecuteContext(cmd.Context())
		if err == nil {
			err = errors.New("kube-apiserver ended")
		}
		failed <- err
	}()

	if err := a.waitReady(ctx, failed, 90*time.Second); err != nil {
		return err
	}
	ready(map[string]any{
		"url":        a.url(a.advertise),
		"kubeconfig": a.path("admin.kubeconfig"),
	})

	return <-failed
}

func (a *apiServer) url(host string) string {
	return fmt.Sprintf("https://%s", net.JoinHostPort(host,
		fmt.Sprint(a.port)))
}

func (a *apiServer) args() []string {
	args := []string{
		"--etcd-servers=" + a.etcd,
		"--bind-address=" + a.bind,
		"--advertise-address=" + a.advertise,
		fmt.Sprintf("--secure-port=%d", a.port),
		"--cert-dir=" + a.dir,
		"--tls-cert-file=" + a.path("server.crt"),
		"--tls-private-key-file=" + a.path("server.key"),
		"--client-ca-file=" + a.path("ca.crt"),
		"--service-account-key-file=" + a.path("sa.key"),
		"--service-account-signing-key-file=" + a.path("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--token-auth-file=" + a.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount",
		"--profiling=false",
	}
	return append(args, a.more...)
}

// prepare writes keys, tokens and kubeconfigs; all but the extra tokens are
// the same at every start from the same directory.
func (a *apiServer) prepare() error {
	dir, err := filepath.Abs(a.dir)
	if err != nil {
		return err
	}
	a.dir = dir
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}

	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(a.advertise)}
	names := []string{"localhost", "kubernetes", "kubernetes.default",
		"kubernetes.default.svc"}
	if err := a.ensure(ips, names); err != nil {
		return err
	}
	if err := a.ensureToken(); err != nil {
		return err
	}

	tokens := fmt.Sprintf("%s,admin,admin,\"system:masters\"\n%s", a.token,
		strings.Join(a.extra, ""))
	if err := os.WriteFile(a.path("tokens.csv"), []byte(tokens),
		0o600); err != nil {
		return err
	}

	byToken := &clientcmdapi.AuthInfo{Token: a.token}
	byCert := &clientcmdapi.AuthInfo{
		ClientCertificate: a.path("admin.crt"),
		ClientKey:         a.path("admin.key"),
	}
	for name, k := range map[string]struct {
		host string
		auth *clientcmdapi.AuthInfo
	}{
		"admin.kubeconfig":    {a.advertise, byToken},
		"cert.kubeconfig":     {a.advertise, byCert},
		"loopback.kubeconfig": {"127.0.0.1", byToken},
	} {
		if err := a.writeKubeconfig(name, k.host, k.auth); err != nil {
			return err
		}
	}
	return nil
}

func (a *apiServer) ensureToken() error {
	b, err := os.ReadFile(a.path("token"))
	if err == nil {
		a.token = strings.TrimSpace(string(b))
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	a.token = hex.EncodeToString(random)
	return os.WriteFile(a.path("token"), []byte(a.token), 0o600)
}

func (a *apiServer) writeKubeconfig(name, host string,
	auth *clientcmdapi.AuthInfo) error {

	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["testbed"] = &clientcmdapi.Cluster{
		Server:               a.url(host),
		CertificateAuthority: a.path("ca.crt"),
	}
	cfg.AuthInfos["admin"] = auth
	cfg.Contexts["testbed"] = &clientcmdapi.Context{
		Cluster: "testbed", AuthInfo: "admin",
	}
	cfg.CurrentContext = "testbed"
	return clientcmd.WriteToFile(*cfg, a.path(name))
}

// waitReady asks /readyz, as a client would, until it says ok.
func (a *apiServer) waitReady(ctx context.Context, failed <-chan error,
	limit time.Duration) error {

	pem, err := os.ReadFile(a.path("ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := &http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool},
			DisableKeepAlives: true,
		},
	}

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("not asked")
	for {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("not ready in %v: %w", limit, last)
		case <-tick.C:
		}

		req, err := http.NewRequestWithContext(ctx, http.MethodGet,
			a.url("127.0.0.1")+"/readyz", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+a.token)
		resp, err := client.Do(req)
		if err != nil {
			last = err
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		last = errors.New(resp.Status)
	}
}
