// The certificates of the API server: a CA, a serving certificate and an
// administrator's client certificate, kept across restarts of the server so
// that clients go on verifying it.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const certLife = 30 * 24 * time.Hour

// pki names the files below one directory.
type pki struct {
	dir string
}

func (p pki) path(name string) string {
	return filepath.Join(p.dir, name)
}

// ensure creates whatever is missing. ca.crt is written last: where it
// exists, the rest does.
func (p pki) ensure(ips []net.IP, names []string) error {
	_, err := os.Stat(p.path("ca.crt"))
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := template("kube-testbed CA")
	ca.IsCA = true
	ca.BasicConstraintsValid = true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca,
		caKey.Public(), caKey)
	if err != nil {
		return err
	}

	serving := template("kube-apiserver")
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	serving.IPAddresses = ips
	serving.DNSNames = names
	if err := p.issue("server", serving, ca, caKey); err != nil {
		return err
	}

	admin := template("admin")
	admin.Subject.Organization = []string{"system:masters"}
	admin.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if err := p.issue("admin", admin, ca, caKey); err != nil {
		return err
	}

	if err := p.accountKey(); err != nil {
		return err
	}

	return writePEM(p.path("ca.crt"), "CERTIFICATE", caDER)
}

// issue writes NAME.crt and NAME.key.
func (p pki) issue(name string, cert, ca *x509.Certificate,
	caKey *ecdsa.PrivateKey) error {

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, key.Public(),
		caKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(p.path(name+".key"), "EC PRIVATE KEY",
		keyDER); err != nil {
		return err
	}
	return writePEM(p.path(name+".crt"), "CERTIFICATE", der)
}

// accountKey writes the key that signs service account tokens.
func (p pki) accountKey() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return writePEM(p.path("sa.key"), "RSA PRIVATE KEY",
		x509.MarshalPKCS1PrivateKey(key))
}

func template(name string) *x509.Certificate {
	// A serial is at most 20 octets and must differ within one CA.
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // the kernel's random source does not fail
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path,
		pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
