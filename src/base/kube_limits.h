/*
 * kube_limits - the ceilings on what comes from outside, with unit and source.
 *
 * Timers and ceilings of one file stand in that file.  Constants only; anyone
 * may include it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_LIMITS_H
#define KUBE_LIMITS_H


/* DNS-1123 label and subdomain: apimachinery/pkg/util/validation. */
#define KUBE_NAMESPACE_LEN_MAX       63
#define KUBE_NAME_LEN_MAX            253
#define KUBE_KEY_LEN_MAX             (KUBE_NAMESPACE_LEN_MAX + 1               \
                                      + KUBE_NAME_LEN_MAX)

/* A label's name with its prefix, and its value: apimachinery's
   IsQualifiedName() and IsValidLabelValue().  How many there are is bounded by
   an object's size alone; more than a page of them are nobody's. */
#define KUBE_LABEL_NAME_MAX          (KUBE_NAME_LEN_MAX + 1 + 63)
#define KUBE_LABEL_VALUE_MAX         63
#define KUBE_LABELS_MAX              256

/* A port name is an IANA service name: 15; endpoint ports allow a label. */
#define KUBE_PORT_NAME_LEN_MAX       63

/* metadata.uid is a UUID; other strings kept of an object. */
#define KUBE_UID_LEN_MAX             128
#define KUBE_STRING_LEN_MAX          253

/* resourceVersion: opaque; etcd's has 20 digits at most, 40 leaves room. */
#define KUBE_RV_LEN_MAX              40

/* metadata.continue is base64 of a key and a version: about 500 bytes. */
#define KUBE_CONTINUE_LEN_MAX        4096

/* etcd refuses more than 1.5 MiB; max_object's default and bounds. */
#define KUBE_OBJECT_BYTES_DEFAULT    (4u << 20)
#define KUBE_OBJECT_BYTES_MIN        (4u << 10)
#define KUBE_OBJECT_BYTES_MAX        (64u << 20)

/* List metadata and other top-level members kept of a list. */
#define KUBE_LIST_META_BYTES_MAX     (16u << 10)

/* An error body (metav1.Status) is read up to here. */
#define KUBE_STATUS_BYTES_MAX        (64u << 10)
#define KUBE_MESSAGE_LEN_MAX         256

/* Go's encoding/json, which the API server reads objects with, goes no
   deeper: maxNestingDepth. */
#define KUBE_JSON_DEPTH_MAX          10000

/* maxEndpoints and maxPorts in Kubernetes' pkg/apis/discovery/validation. */
#define KUBE_SLICE_ENDPOINTS_MAX     1000
#define KUBE_SLICE_PORTS_MAX         20000

/* core/v1 has no limit on the ports of a Service.  The smallest is written
   {"port":1} and a comma: no object holds more. */
#define KUBE_SERVICE_PORTS_MAX       (KUBE_OBJECT_BYTES_MAX / 11)
#define KUBE_CLUSTER_IPS_MAX         2

/* Slices of one Service that are joined: 100 000 endpoints at 100 a slice. */
#define KUBE_SERVICE_SLICES_MAX      1024

/*
 * Usable endpoints of one Service that a worker builds peers of.  Ours: stock
 * balancers walk a list of them for each request.  "hash consistent" keeps 160
 * points an endpoint and sorts them in one piece.
 */
#define KUBE_SERVICE_BUILT_MAX       16384
#define KUBE_SERVICE_BUILT_HASH_MAX  4096

/* Services with more than that which a worker names; the others it counts.
   A zone of 1 MB has room for 64 workers, the smallest, of 128 KiB, for 8,
   which more of them share. */
#define KUBE_TRUNCATED_SHOWN_MAX     8

/* kube_informer: namespaces by name, two watches each: of Services, and of
   EndpointSlices or Endpoints. */
#define KUBE_NAMESPACES_MAX          64
#define KUBE_SCOPES_A_NAMESPACE      2
#define KUBE_SCOPES_MAX              (KUBE_SCOPES_A_NAMESPACE                 \
                                      * KUBE_NAMESPACES_MAX)
#define KUBE_SELECTOR_LEN_MAX        1024

/*
 * Certificates of a CA bundle that a state file remembers: of a larger bundle
 * those with the smallest marks, so that two that differ in some still meet.
 */
#define KUBE_CA_MARKS_MAX            64

/* Retry-After is honoured up to here, in seconds. */
#define KUBE_RETRY_AFTER_MAX         300

/*
 * Bytes taken from the sockets before the host's loop gets its turn.  Each turn
 * wakes senders that wait for room: few large ones cost less.
 */
#define KUBE_TICK_BYTES              (256u << 10)

/* Keys queued in the DeltaFIFO before the transport is paused. */
#define KUBE_FIFO_KEYS_MAX           4096
#define KUBE_FIFO_BYTES_MAX          (8u << 20)

/* Credential files: token 64 KiB, kubeconfig and PEM bundles 1 MiB. */
#define KUBE_TOKEN_BYTES_MAX         (64u << 10)
#define KUBE_CREDENTIAL_BYTES_MAX    (1u << 20)

/* Beyond idle_timeout, ms: a watch is opened again, and that takes a while. */
#define KUBE_STALE_GRACE_MS          30000

#define KUBE_URL_LEN_MAX             8192

/*
 * How long the last good state of an object is served whose newer one was
 * refused, in ms: about as long as a Pod's address may stay unused before
 * somebody else gets it.  max_outdated's default.
 */
#define KUBE_OUTDATED_MS_DEFAULT     600000

/*
 * Objects that killed the process: how long two deaths of one are held against
 * it, ms, and how many are remembered.  A row is 72 bytes of the zone, two
 * deaths and a second or more of damping each: the oldest one goes.
 */
#define KUBE_POISON_MS               (10u * 60 * 1000)
#define KUBE_POISON_ROWS             32

/*
 * Entries that the writer compares with what it knows every 10 s, at its check:
 * about 2 ms, and 10 000 Services are gone through in two minutes.
 */
#define KUBE_ZONE_SCRUB              2048

/*
 * Objects refused without a name that the informer process knows by a hash:
 * 60 bytes each, and some 300 a Service.  Of more it knows their number alone.
 */
#define KUBE_UNNAMED_MAX             (256u << 10)

/* Keys shown in the status page's refused list; the count is exact. */
#define KUBE_REFUSED_SHOWN_MAX       100


#endif /* KUBE_LIMITS_H */
