/*
 * kube_cli_json - records of the zone as JSON text on a stdio stream.
 *
 * For the command line tool only.  Whether the stream took it is found out by
 * the caller, with ferror().
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_cli_json.h"


/* The length of a valid UTF-8 sequence at s, RFC 3629; 0: there is none. */
static size_t
json_sequence(kube_str_t s)
{
    size_t         i, n;
    unsigned char  c, low, high;

    c = (unsigned char) s.data[0];
    low = 0x80;
    high = 0xbf;

    if (c >= 0xc2 && c <= 0xdf) {
        n = 2;

    } else if (c >= 0xe0 && c <= 0xef) {
        n = 3;
        low = (c == 0xe0) ? 0xa0 : low;
        high = (c == 0xed) ? 0x9f : high;

    } else if (c >= 0xf0 && c <= 0xf4) {
        n = 4;
        low = (c == 0xf0) ? 0x90 : low;
        high = (c == 0xf4) ? 0x8f : high;

    } else {
        return 0;
    }

    if (s.len < n) {
        return 0;
    }

    for (i = 1; i < n; i++) {
        c = (unsigned char) s.data[i];

        if (c < low || c > high) {
            return 0;
        }

        low = 0x80;
        high = 0xbf;
    }

    return n;
}


void
kube_cli_json_string(FILE *out, kube_str_t s)
{
    size_t         n;
    unsigned char  c;

    fputc('"', out);

    while (s.len != 0) {

        c = (unsigned char) s.data[0];
        n = 1;

        if (c == '"' || c == '\\') {
            fprintf(out, "\\%c", c);

        } else if (c < 0x20 || c == 0x7f) {
            fprintf(out, "\\u%04x", c);

        } else if (c < 0x80) {
            fputc(c, out);

        } else {
            n = json_sequence(s);

            if (n == 0) {
                fputs("\\ufffd", out);
                n = 1;

            } else {
                fwrite(s.data, 1, n, out);
            }
        }

        s.data += n;
        s.len -= n;
    }

    fputc('"', out);
}


static void
json_member(FILE *out, const char *name, kube_str_t value)
{
    fprintf(out, "\"%s\":", name);
    kube_cli_json_string(out, value);
}


static const char *
json_bool(bool value)
{
    return value ? "true" : "false";
}


static void
json_address(FILE *out, const kube_addr_t *addr)
{
    char  text[KUBE_ADDR_TEXT_MAX];

    (void) kube_addr_text(addr, text);
    fprintf(out, "\"%s\"", text);
}


static void
json_ports(FILE *out, const kube_port_t *ports, size_t n)
{
    size_t  i;

    fputs("\"ports\":[", out);

    for (i = 0; i < n; i++) {
        fputs(i ? ",{" : "{", out);
        json_member(out, "name", ports[i].name);

        if (ports[i].port != 0) {
            fprintf(out, ",\"port\":%u", (unsigned) ports[i].port);

        } else {
            fputs(",\"port\":null", out);
        }

        fprintf(out, ",\"protocol\":\"%s\",\"app_protocol\":",
                kube_protocol_text(ports[i].protocol));

        if (ports[i].app_protocol.len != 0) {
            kube_cli_json_string(out, ports[i].app_protocol);

        } else {
            fputs("null", out);
        }

        fputc('}', out);
    }

    fputc(']', out);
}


static void
json_service(FILE *out, const kube_service_t *service)
{
    size_t  i;

    fprintf(out, "{\"type\":\"%s\",\"headless\":%s,\"cluster_ips\":[",
            kube_service_type_text(service->type),
            json_bool(service->headless));

    for (i = 0; i < service->cluster_ips_n; i++) {
        fputs(i ? "," : "", out);
        json_address(out, &service->cluster_ips[i]);
    }

    fputs("],", out);
    json_ports(out, service->ports, service->ports_n);
    fputc('}', out);
}


static void
json_slice(FILE *out, const kube_slice_t *slice)
{
    size_t                  i;
    const kube_endpoint_t  *e;

    fputc('{', out);
    json_member(out, "service", slice->service);
    fprintf(out, ",\"address_type\":\"%s\",",
            slice->family == KUBE_FAMILY_IPV4 ? "IPv4"
            : slice->family == KUBE_FAMILY_IPV6 ? "IPv6" : "FQDN");
    json_ports(out, slice->ports, slice->ports_n);
    fputs(",\"endpoints\":[", out);

    for (i = 0; i < slice->endpoints_n; i++) {
        e = &slice->endpoints[i];

        fprintf(out, "%s{\"address\":", i ? "," : "");
        json_address(out, &e->address);
        fprintf(out, ",\"ready\":%s,\"serving\":%s,\"terminating\":%s,",
                json_bool(e->ready), json_bool(e->serving),
                json_bool(e->terminating));
        json_member(out, "pod", e->pod);
        fputc(',', out);
        json_member(out, "node", e->node);
        fputc(',', out);
        json_member(out, "zone", e->zone);
        fputc('}', out);
    }

    fputs("]}", out);
}


void
kube_cli_json_object(FILE *out, const kube_object_t *object)
{
    if (object->resource == KUBE_RESOURCE_SERVICES) {
        json_service(out, &object->u.service);
        return;
    }

    json_slice(out, &object->u.slice);
}
