/*
 * decode_cases - objects as texts, and what is to become of them: what
 * test_decode expects, test_decode_oracle compares with cJSON, and
 * t/cluster/decode with Go's own types.
 *
 * For t/unit only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DECODE_CASES_H
#define KUBE_DECODE_CASES_H


#include "decode_test.h"


#define SLICE(members)  "{" META ",\"addressType\":\"IPv4\"" members "}"

/* A slice with more in its metadata. */
#define LABELLED(members)                                                     \
    "{\"addressType\":\"IPv4\",\"metadata\":{\"name\":\"web\","               \
    "\"namespace\":\"shop\",\"uid\":\"u-1\",\"resourceVersion\":\"7\","       \
    members "}}"

#define LABEL    "\"kubernetes.io/service-name\":"
#define TRIGGER  "\"endpoints.kubernetes.io/last-change-trigger-time\":"


typedef struct {
    const char  *text;
    const char  *what;      /* part of error.what; NULL: taken */
    uint32_t     dropped;
    bool         lax;       /* Go refuses what is not used here */
} decode_case_t;


/* As a 1.36 API server prints them, managedFields and all. */
static const char  decode_service[] =
    "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{"
    "\"name\":\"web\",\"namespace\":\"shop\","
    "\"uid\":\"0f6a3c1e-2f7b-4a53-9c55-1b8f3c7e9d10\","
    "\"resourceVersion\":\"1045\",\"creationTimestamp\":"
    "\"2026-03-01T10:00:00Z\",\"labels\":{\"app\":\"web\"},"
    "\"annotations\":{\"note\":\"\\u00e4 \\\"quoted\\\" {[\"},"
    "\"managedFields\":[{\"manager\":\"kubectl\",\"operation\":\"Update\","
    "\"fieldsV1\":{\"f:spec\":{\"f:ports\":{\".\":{},"
    "\"k:{\\\"port\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{}}}}}}]},"
    "\"spec\":{\"ports\":[{\"name\":\"http\",\"protocol\":\"TCP\","
    "\"appProtocol\":\"kubernetes.io/ws\",\"port\":80,"
    "\"targetPort\":\"web\"},{\"name\":\"dns\",\"protocol\":\"UDP\","
    "\"port\":53,\"targetPort\":5353,\"nodePort\":30053}],"
    "\"selector\":{\"app\":\"web\"},\"clusterIP\":\"10.96.0.10\","
    "\"clusterIPs\":[\"10.96.0.10\",\"fd00::a\"],\"type\":\"NodePort\","
    "\"sessionAffinity\":\"None\",\"ipFamilies\":[\"IPv4\",\"IPv6\"]},"
    "\"status\":{\"loadBalancer\":{}}}";

static const char  decode_slice[] =
    "{\"metadata\":{\"name\":\"web-abc12\",\"generateName\":\"web-\","
    "\"namespace\":\"shop\",\"uid\":\"7d1c\",\"resourceVersion\":\"2001\","
    "\"labels\":{\"kubernetes.io/service-name\":\"web\"},\"annotations\":{"
    "\"endpoints.kubernetes.io/last-change-trigger-time\":"
    "\"2026-03-01T00:00:00.250Z\"}},\"addressType\":\"IPv4\","
    "\"endpoints\":[{\"addresses\":[\"10.1.0.5\"],\"conditions\":{"
    "\"ready\":true,\"serving\":true,\"terminating\":false},"
    "\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"shop\","
    "\"name\":\"web-1\",\"uid\":\"p1\"},\"nodeName\":\"node-a\","
    "\"zone\":\"eu-1a\"},{\"addresses\":[\"10.1.0.6\"],\"conditions\":{"
    "\"ready\":false,\"serving\":true,\"terminating\":true}},"
    "{\"addresses\":[\"10.1.0.7\",\"10.1.0.8\"],\"conditions\":{}}],"
    "\"ports\":[{\"name\":\"http\",\"port\":8080,\"protocol\":\"TCP\"},"
    "{\"name\":\"\",\"port\":9090}]}";


static const decode_case_t  decode_cases_metadata[] = {
    { .text = "{" META "}" },
    { .text = "{\"kind\":\"Service\"," META "}" },
    { .text = "{\"kind\":null,\"apiVersion\":null," META "}" },
    { .text = "{\"kind\":\"service\"," META "}", .what = "wrong kind" },
    { .text = "{\"kind\":\"Table\"," META "}", .what = "wrong kind" },
    { .text = "{\"kind\":\"\"," META "}" },
    { .text = "{\"kind\":1," META "}", .what = "malformed kind" },
    { .text = "{\"apiVersion\":\"v2\"," META "}", .what = "wrong apiVersion" },
    { .text = "{\"apiVersion\":\"discovery.k8s.io/v1\"," META "}",
      .what = "wrong apiVersion" },
    { .text = "{\"Metadata\":{}," META "}" },
    { .text = "[]", .what = "no item" },
    { .text = "null", .what = "no item" },
    { .text = "\"x\"", .what = "no item" },
    { .text = "{}", .what = "namespace" },
    { .text = "{\"metadata\":null}", .what = "namespace" },
    { .text = "{\"metadata\":[]}", .what = "metadata" },
    { .text = "{" META ",\"metadata\":{}}" },
    { .text = "{\"metadata\":{}," META "}" },
    { .text =
      "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\","
      "\"resourceVersion\":\"1\"}}",
      .what = "namespace" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a.b\",\"name\":\"a\",\"uid\":\"u\","
      "\"resourceVersion\":\"1\"}}",
      .what = "namespace" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a\",\"name\":\"../x\",\"uid\":\"u\","
      "\"resourceVersion\":\"1\"}}",
      .what = "name" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a.b\",\"uid\":\"u\","
      "\"resourceVersion\":\"1\"}}",
      .what = "metadata.name" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\\r\\nb\",\"uid\":\"u\","
      "\"resourceVersion\":\"1\"}}",
      .what = "metadata.name" },
    { .text = "{\"metadata\":{\"namespace\":\"a\",\"name\":\"\\u001b[1m\","
      "\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
      .what = "metadata.name" },
    { .text = "{\"metadata\":{\"namespace\":\"a\",\"name\":7,\"uid\":\"u\","
      "\"resourceVersion\":\"1\"}}",
      .what = "metadata.name" },
    { .text = "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\","
      "\"resourceVersion\":\"1\"}}",
      .what = "uid" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\",\"uid\":\"a b\","
      "\"resourceVersion\":\"1\"}}",
      .what = "uid" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\",\"uid\":\"u\"}}",
      .what = "resourceVersion" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\",\"uid\":\"u\","
      "\"resourceVersion\":7}}",
      .what = "resourceVersion" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\",\"uid\":\"u\","
      "\"resourceVersion\":\"0\"}}",
      .what = "resourceVersion" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\",\"uid\":\"u\","
      "\"resourceVersion\":\"007\"}}",
      .what = "resourceVersion" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\",\"uid\":\"u\","
      "\"resourceVersion\":\"1234567890123456789012345678901234567890\"}}" },
    { .text = "{" META "}}", .what = "bytes behind" },

    /* as Go reads them */
    { .text = "{\"m\\u0065tadata\":{\"name\":\"w\\u0065b\",\"namespace\":\"a\","
      "\"uid\":\"u\",\"resourceVersion\":\"1\"}}" },
    { .text = "{" META ",\"metadata\":null,\"kind\":null}" },
    { .text = "{" META ",\"metadata\":{\"name\":\"b\",\"uid\":null}}" },
    { .text = "{" META ",\"apiVersion\":\"v1\",\"apiVersion\":null}" },
    { .text = "{" META ",\"apiVersion\":\"\"}" },

    /* what is not used is skipped by its structure */
    { .text = "{\"a\":\"\\u0000\\ud800\",\"b\":[1e999,-0.0]," META "}" },
    { .text = "{\"a\":\"\xff\"," META "}" },
    { .text = "{\"a\":\"\x01\\x\"," META "}", .lax = true },
    { .text = "{\"a\":[01,.5,nan,'x'{}]," META "}", .lax = true },
    { .text = "{\"a\":[01]}x," META "}", .what = "bytes behind" },
    { .text = "{\"a\":{\"b\":[}}," META "}", .what = "no item" },
    { .text = "{" META " \"a\":1}", .what = "unreadable" },
    { .text = "{" META ",}", .what = "unreadable" },
    { .text = "{" META ",\"a\"}", .what = "unreadable" }
};


static const decode_case_t  decode_cases_services[] = {
    { .text = "{" META ",\"spec\":null}" },
    { .text = "{" META ",\"spec\":[]}", .what = "spec" },
    { .text = "{" META ",\"spec\":{\"type\":\"ExternalName\","
      "\"externalName\":\"x.y\"}}" },
    { .text = "{" META ",\"spec\":{\"type\":\"Other\"}}",
      .what = "spec.type" },
    { .text = "{" META ",\"spec\":{\"type\":1}}", .what = "spec.type" },
    { .text = "{" META ",\"spec\":{\"clusterIP\":\"1.2.3.400\"}}",
      .dropped = 1 },
    { .text = "{" META ",\"spec\":{\"clusterIPs\":[\"1.1.1.1\",\"2.2.2.2\","
      "\"3.3.3.3\"]}}",
      .dropped = 1 },
    { .text = "{" META ",\"spec\":{\"clusterIPs\":[1]}}", .dropped = 1 },
    { .text = "{" META ",\"spec\":{\"clusterIPs\":\"1.1.1.1\"}}",
      .dropped = 1 },
    { .text = "{" META ",\"spec\":{\"ports\":null}}" },
    { .text = "{" META ",\"spec\":{\"ports\":{}}}", .what = "ports" },
    { .text = "{" META ",\"spec\":{\"ports\":[{}]}}", .dropped = 1 },
    { .text = "{" META ",\"spec\":{\"ports\":[null,1,\"a\",{\"port\":1}]}}",
      .dropped = 3 },
    { .text = "{" META ",\"spec\":{\"ports\":[{\"port\":0},{\"port\":-1},"
      "{\"port\":65536},{\"port\":80.5},{\"port\":\"80\"},{\"port\":1e999},"
      "{\"port\":8e1},{\"port\":080},{\"port\":NaN},"
      "{\"port\":80,\"protocol\":\"tcp\"},{\"port\":80,\"protocol\":6},"
      "{\"port\":80,\"name\":\"A\"},{\"port\":80,\"name\":5}]}}",
      .dropped = 13 },
    { .text = "{" META ",\"spec\":{\"ports\":[{\"port\":65535},{\"port\":80},"
      "{\"port\":1,\"protocol\":\"SCTP\",\"name\":null}]}}" },

    /* twice: merged, and null leaves what was before */
    { .text = "{" META ",\"spec\":{\"type\":\"NodePort\"},\"spec\":{"
      "\"ports\":[{\"port\":1}]}}" },
    { .text = "{" META ",\"spec\":{\"type\":\"NodePort\",\"type\":null,"
      "\"clusterIP\":\"1.1.1.1\",\"clusterIP\":null},\"spec\":null}" },
    { .text = "{" META ",\"spec\":{\"ports\":[{\"port\":1,\"name\":\"a\"},"
      "{\"port\":2}],\"ports\":[{\"port\":3}]}}" },
    { .text = "{" META ",\"spec\":{\"ports\":[{\"port\":1}],\"ports\":null}}" },
    { .text = "{" META ",\"spec\":{\"ports\":[{\"port\":1,\"port\":null,"
      "\"name\":\"a\",\"name\":null,\"protocol\":\"UDP\",\"protocol\":null,"
      "\"appProtocol\":\"x\",\"appProtocol\":null}]}}" },
    { .text = "{" META ",\"spec\":{\"clusterIPs\":[\"1.1.1.1\",null,"
      "\"None\"]}}" },
    { .text = "{" META ",\"spec\":{\"clusterIPs\":[\"1.1.1.1\"],"
      "\"clusterIPs\":[\"2.2.2.2\",\"\"]}}" },

    /* texts that decide, and those that are only shown */
    { .text = "{" META ",\"spec\":{\"ports\":[{\"port\":1,\"name\":"
      "\"a\\u0000\"},{\"port\":2,\"protocol\":\"TCP\\u0000\"},{\"port\":3,"
      "\"appProtocol\":\"a\\u0000\"},{\"port\":4,\"name\":\"\\u0061\"}]}}",
      .dropped = 3 },
    { .text = "{" META ",\"spec\":{\"ports\":[{\"port\":1,\"name\":"
      "\"a\x01\"},{\"port\":2,\"name\":\"\\x\"},{\"port\":3,\"appProtocol\":"
      "\"\\ud800\"}]}}", .dropped = 3 },
    { .text = "{" META ",\"spec\":{\"\\u0070orts\":[{\"po\\u0072t\":1}]}}" },
    { .text = "{" META ",\"spec\":{\"ports\":[{\"port\":1},]}}",
      .what = "value expected" },
    { .text = "{" META ",\"spec\":{\"ports\":[{\"port\":1}{\"port\":2}]}}",
      .what = "comma" },
    { .text = "{" META ",\"spec\":{\"type\":\"Cluster\\u0049P\"}}" },
    { .text = "{" META ",\"spec\":{\"clusterIP\":7}}", .dropped = 1 },

    /* of the families the first one counts */
    { .text = "{" META ",\"spec\":{\"ipFamilies\":[\"IPv6\",\"IPv4\"]}}" },
    { .text = "{" META ",\"spec\":{\"ipFamilies\":[]}}" },
    { .text = "{" META ",\"spec\":{\"ipFamilies\":null}}" },
    { .text = "{" META ",\"spec\":{\"ipFamilies\":[\"IPv\\u0034\",7,{}]}}",
      .lax = true },
    { .text = "{" META ",\"spec\":{\"ipFamilies\":[\"ipv4\"]}}",
      .dropped = 1 },
    { .text = "{" META ",\"spec\":{\"ipFamilies\":[\"IPv4\\u0000\"]}}",
      .dropped = 1 },
    { .text = "{" META ",\"spec\":{\"ipFamilies\":[null,\"IPv4\"]}}",
      .dropped = 1 },
    { .text = "{" META ",\"spec\":{\"ipFamilies\":[[\"IPv4\"]]}}",
      .dropped = 1 },
    { .text = "{" META ",\"spec\":{\"ipFamilies\":\"IPv4\"}}",
      .dropped = 1 },
    { .text = "{" META ",\"spec\":{\"ipFamilies\":[\"IPv4\"],"
      "\"ipFamilies\":[\"IPv6\"]}}" }
};


static const decode_case_t  decode_cases_slices[] = {
    { .text = "{" META "}", .what = "addressType" },
    { .text = "{" META ",\"addressType\":\"ipv4\"}", .what = "addressType" },
    { .text = "{" META ",\"addressType\":4}", .what = "addressType" },
    { .text =
      "{\"kind\":\"EndpointSlice\",\"apiVersion\":\"discovery.k8s.io/v1\","
      META ",\"addressType\":\"IPv6\"}" },
    { .text = "{\"apiVersion\":\"discovery.k8s.io/v1beta1\"," META
      ",\"addressType\":\"IPv6\"}",
      .what = "apiVersion" },
    { .text =
      "{\"metadata\":{\"namespace\":\"a\",\"name\":\"a.b\",\"uid\":\"u\","
      "\"resourceVersion\":\"1\"},\"addressType\":\"IPv4\"}" },
    { .text = SLICE(",\"endpoints\":null,\"ports\":null") },
    { .text = SLICE(",\"endpoints\":{}"), .what = "endpoints" },
    { .text = SLICE(",\"ports\":\"\""), .what = "ports" },
    { .text = SLICE(",\"endpoints\":[null,1,[],{},{\"addresses\":null},"
            "{\"addresses\":[]},{\"addresses\":[4]},"
            "{\"addresses\":\"1.1.1.1\"}]"),
      .dropped = 8 },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"::1\"]},"
            "{\"addresses\":[\"::ffff:1.2.3.4\"]},"
            "{\"addresses\":[\"01.2.3.4\"]},{\"addresses\":[\"web\"]},"
            "{\"addresses\":[\"1.2.3.4\"]},{\"addresses\":[\"\"]}]"),
      .dropped = 5 },
    { .text =
      SLICE(",\"endpoints\":[{\"addresses\":[\"1.2.3.4\"],\"conditions\":[]},"
            "{\"addresses\":[\"1.2.3.4\"],\"conditions\":{\"ready\":\"x\"}},"
            "{\"addresses\":[\"1.2.3.4\"],\"conditions\":{\"serving\":1}},"
            "{\"addresses\":[\"1.2.3.4\"],\"conditions\":null}]"),
      .dropped = 3 },
    { .text =
      SLICE(",\"ports\":[{\"port\":0},{\"port\":null},{},{\"port\":65536},"
            "{\"protocol\":\"QUIC\",\"port\":1}]"),
      .dropped = 3 },

    /* twice: merged, elements of a list too; null makes pointers absent */
    { .text = SLICE(",\"addressType\":null") },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
      "\"conditions\":{\"ready\":false},\"conditions\":{\"serving\":false},"
      "\"conditions\":null,\"nodeName\":\"a\",\"nodeName\":null,"
      "\"zone\":null,\"zone\":\"b\"}]") },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
      "\"conditions\":{\"ready\":false,\"ready\":null}}]") },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
      "\"nodeName\":\"a\"},{\"addresses\":[\"1.1.1.2\"],\"zone\":\"z\"}],"
      "\"endpoints\":[{\"conditions\":{\"ready\":false}}],"
      "\"endpoints\":[{\"zone\":\"y\"},{},{\"addresses\":[\"1.1.1.3\"]}]") },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"]}],"
      "\"endpoints\":[],\"endpoints\":[{}]"), .dropped = 1 },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"]}],"
      "\"endpoints\":null,\"endpoints\":[{}]"), .dropped = 1 },
    { .text = SLICE(",\"ports\":[{\"name\":\"a\",\"name\":null,\"port\":1,"
      "\"port\":null,\"protocol\":\"UDP\",\"protocol\":null,"
      "\"appProtocol\":\"x\",\"appProtocol\":null},null]") },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
      "\"targetRef\":{\"kind\":\"Pod\",\"name\":\"a\"}},{\"addresses\":"
      "[\"1.1.1.2\"],\"targetRef\":{\"name\":\"a\",\"kind\":\"Pod\"},"
      "\"targetRef\":null}]") },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
      "\"targetRef\":{\"kind\":\"Pod\"},\"targetRef\":{\"name\":\"a\"}}]") },

    /* the label and the trigger */
    { .text = LABELLED("\"labels\":{" LABEL "\"web\"}") },
    { .text = LABELLED("\"labels\":{" LABEL "\"web\"},\"labels\":{\"a\":"
      "\"b\"}") },
    { .text = LABELLED("\"labels\":{" LABEL "\"web\"},\"labels\":null") },
    { .text = LABELLED("\"labels\":{" LABEL "\"web\"," LABEL "null}") },
    { .text = LABELLED("\"labels\":{" LABEL "\"We.b\"}") },
    { .text = LABELLED("\"labels\":{" LABEL "\"\\u0077eb\"}") },
    { .text = LABELLED("\"labels\":{" LABEL "\"web\\u0000\"}"),
      .what = "control byte" },
    { .text = LABELLED("\"labels\":{" LABEL "\"web\x1f\"}"),
      .what = "control byte" },
    { .text = LABELLED("\"labels\":{" LABEL "7}"), .lax = true },
    { .text = LABELLED("\"labels\":[]"), .lax = true },
    { .text = LABELLED("\"annotations\":{\"a\":\"\\u0000\",\"\\ud800\":"
      "\"\\ud800\\u0041\"}") },
    { .text = LABELLED("\"annotations\":{" TRIGGER
      "\"2026-03-01T00:00:00.250Z\"}") },
    { .text = LABELLED("\"annotations\":{" TRIGGER "\"yesterday\"}") },

    /* texts that decide, and those that are only shown */
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\\u0000\"]},"
      "{\"addresses\":[\"1.1.1.\xff\"]},{\"addresses\":[\"\\ud800\"]},"
      "{\"addresses\":[\"1.1.1\\u002e4\"],\"zone\":\"a\\u0000\","
      "\"nodeName\":\"n\\u0001\",\"targetRef\":{\"kind\":\"Pod\",\"name\":"
      "\"\\ud800\"}}]"), .dropped = 6 },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
      "\"zone\":\"a\\\"b\\\\c\",\"nodeName\":\"\\u0041\"}]") },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\",7,null]}]"),
      .lax = true },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
      "\"zone\":7}]"), .dropped = 1 },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"]"),
      .what = "no item" },
    { .text = SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"]},]"),
      .what = "value expected" }
};


#endif /* KUBE_DECODE_CASES_H */
