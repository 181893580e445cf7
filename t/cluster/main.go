// kube-testbed: a real Kubernetes control plane, pods that serve, and the
// instruments that measure a gateway in front of them. For tests only: it has
// no security worth the name and must run inside a network namespace made for
// it (netns.py). Each subcommand is one process; testbed.py drives them.
//
// Copyright (C) the nginx-kube-informer authors
// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sort"
	"syscall"
)

// commands maps each subcommand to its body. A body returns when its work is
// done or ctx ends; the error, if any, is printed and makes the exit status 1.
var commands = map[string]func(ctx context.Context, args []string) error{
	"apiserver":   runAPIServer,
	"compact":     runCompact,
	"controllers": runControllers,
	"etcd":        runEtcd,
	"kubelet":     runKubelet,
	"load":        runLoad,
	"raw":         runRaw,
	"swap":        runSwap,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		usage()
		os.Exit(2)
	}

	ctx := context.Background()
	if os.Args[1] != "apiserver" {
		// kube-apiserver installs its own handlers, and only once.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGINT,
			syscall.SIGTERM)
		defer stop()
	}

	if err := commands[os.Args[1]](ctx, os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "kube-testbed %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func usage() {
	names := make([]string, 0, len(commands))
	for name := range commands {
		names = append(names, name)
	}
	sort.Strings(names)

	fmt.Fprintln(os.Stderr, "usage: kube-testbed COMMAND [flags]")
	for _, name := range names {
		fmt.Fprintf(os.Stderr, "    %s\n", name)
	}
}

// service holds what every long-running subcommand has in common.
type service struct {
	flags  *flag.FlagSet
	log    *string
	tether *bool
}

// newService declares the common flags beside the subcommand's own.
func newService(name string) *service {
	fs := flag.NewFlagSet(name, flag.ExitOnError)
	return &service{
		flags: fs,
		log:   fs.String("log", "", "append the log to this file"),
		tether: fs.Bool("tether", false,
			"exit when standard input reaches its end"),
	}
}

// parse reads the flags, redirects the log and ties the process's life to its
// standard input, so that a test that is killed leaves nothing behind.
func (s *service) parse(args []string) error {
	if err := s.flags.Parse(args); err != nil {
		return err
	}

	if *s.log != "" {
		f, err := os.OpenFile(*s.log,
			os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		// klog, zap and panics write to descriptor 2, not to a variable.
		if err := syscall.Dup3(int(f.Fd()), 2, 0); err != nil {
			return err
		}
	}

	if *s.tether {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}

	return nil
}

// require fails when a flag that has no sensible default was not given.
func require(flags map[string]string) error {
	for name, value := range flags {
		if value == "" {
			return fmt.Errorf("-%s is required", name)
		}
	}
	return nil
}

// ready tells the caller, in one line on standard output, that the process
// now does its work.
func ready(extra map[string]any) {
	line := map[string]any{"ready": true, "pid": os.Getpid()}
	for key, value := range extra {
		line[key] = value
	}
	printJSON(line)
}

// printJSON writes one value as one line on standard output.
func printJSON(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		fmt.Fprintf(os.Stderr, "encoding the result: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("%s\n", b)
}
