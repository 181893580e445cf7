/*
 * kube_status_html - the facts of kube_facts as plain HTML, for the page's
 * readers without scripts.
 *
 * It prints lists of names and values, nothing that styles; the page around
 * them, and what scripts draw, are ngx_module/page's.  Called by workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_STATUS_HTML_H
#define KUBE_STATUS_HTML_H


#include "kube_report.h"
#include "kube_text.h"


/* Whether all of it was printed is found in text->failed. */
void kube_status_html_print(kube_text_t *text, const kube_report_t *reports,
    size_t n);


#endif /* KUBE_STATUS_HTML_H */
