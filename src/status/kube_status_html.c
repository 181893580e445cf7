/*
 * kube_status_html - the facts of kube_facts as plain HTML, for the page's
 * readers without scripts.
 *
 * It prints nothing that styles (ngx_module/page does).  Called by workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <inttypes.h>

#include "kube_facts.h"
#include "kube_status_html.h"


static void
html_fact(kube_text_t *text, const kube_fact_t *fact, const void *of)
{
    bool  none;

    none = (fact->form == KUBE_FACT_ID && kube_fact_number(fact, of) == 0)
           || (fact->form == KUBE_FACT_AGE
               && kube_fact_number(fact, of) == KUBE_NEVER)
           || (fact->form == KUBE_FACT_TIME && kube_fact_time(fact, of) <= 0)
           || (fact->form == KUBE_FACT_OPTIONAL
               && kube_fact_text(fact, of).len == 0);

    if (none) {
        kube_text_put(text, KUBE_STR("none"));
        return;
    }

    switch (fact->form) {

    case KUBE_FACT_BOOL:
        kube_text_put(text, kube_fact_bool(fact, of) ? KUBE_STR("yes")
                                                     : KUBE_STR("no"));
        break;

    case KUBE_FACT_NUMBER:
    case KUBE_FACT_ID:
        kube_text_printf(text, "%" PRIu64, kube_fact_number(fact, of));
        break;

    case KUBE_FACT_AGE:
        kube_text_thousandths(text, kube_fact_number(fact, of));
        break;

    case KUBE_FACT_TIME:
        kube_text_time(text, kube_fact_time(fact, of));
        break;

    case KUBE_FACT_TEXT:
    case KUBE_FACT_OPTIONAL:
        kube_text_escape(text, kube_fact_text(fact, of), KUBE_ESCAPE_HTML);
    }
}


static void
html_facts(kube_text_t *text, const kube_fact_t *facts, size_t n,
    const void *of)
{
    size_t  i;

    kube_text_put(text, KUBE_STR("<dl class=\"facts\">\n"));

    for (i = 0; i < n; i++) {

        if (facts[i].key == NULL) {
            continue;
        }

        kube_text_printf(text, "<div><dt>%s%s%s</dt><dd>",
                         facts[i].group ? facts[i].group : "",
                         facts[i].group ? "." : "", facts[i].key);
        html_fact(text, &facts[i], of);
        kube_text_put(text, KUBE_STR("</dd></div>\n"));
    }

    kube_text_put(text, KUBE_STR("</dl>\n"));
}


void
kube_status_html_print(kube_text_t *text, const kube_report_t *reports,
    size_t n)
{
    size_t                  i, k, facts_n;
    const kube_fact_t      *facts;
    const kube_degraded_t  *d;

    for (i = 0; i < n; i++) {

        kube_text_put(text, KUBE_STR("<section>\n<h2>Informer "));
        kube_text_escape(text, reports[i].name, KUBE_ESCAPE_HTML);
        kube_text_put(text, KUBE_STR("</h2>\n"));

        for (k = 0; k < reports[i].degraded_n; k++) {
            d = &reports[i].degraded[k];

            kube_text_printf(text, "<p class=\"banner warn\">%s: ",
                             kube_cause_text(d->cause));
            kube_text_escape(text, d->text, KUBE_ESCAPE_HTML);
            kube_text_put(text, KUBE_STR("</p>\n"));
        }

        facts = kube_facts_informer(&facts_n);
        html_facts(text, facts, facts_n, &reports[i]);

        facts = kube_facts_scope(&facts_n);

        for (k = 0; k < reports[i].scopes_n; k++) {
            html_facts(text, facts, facts_n, &reports[i].scopes[k]);
        }

        kube_text_put(text, KUBE_STR("</section>\n"));
    }

    if (n == 0) {
        kube_text_put(text,
                      KUBE_STR("<p>There is no kube_informer block.</p>\n"));
    }
}
