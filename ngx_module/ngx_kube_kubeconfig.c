/*
 * ngx_kube_kubeconfig - a kubeconfig file is judged while nginx reads its own
 * configuration, without its secrets ever entering the master's memory: a
 * child reads the file as the informer will, as "user", and answers by a pipe.
 *
 * It keeps nothing of the file.  The informer process reads it for itself, at
 * run time, through ngx_kube_kubeconfig_read().  Configuration time, but for
 * that.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"
#include "ngx_kube_child.h"

#include <grp.h>


/* What the child is asked, and what it found. */
typedef struct {
    ngx_kube_informer_t  *block;
    ngx_core_conf_t      *ccf;
} ngx_kube_question_t;

typedef struct {
    kube_rc_t             rc;
    unsigned              denied:1;     /* "user" may not read the file */
    unsigned              public:1;     /* a secret in it, which all may read */
    unsigned              unverified:1; /* it says not to verify the server */
    char                  what[256];
} ngx_kube_verdict_t;


#define NGX_KUBE_DENIED  ": let this user read the file and enter its "      \
                         "directories, or name another one with \"user\""


static void ngx_kube_kubeconfig_warn(ngx_cycle_t *cycle,
    const ngx_kube_informer_t *block, const ngx_kube_verdict_t *verdict);
static void ngx_kube_kubeconfig_child(void *data, void *answer);
static unsigned ngx_kube_kubeconfig_public(const ngx_kube_informer_t *block,
    const kube_config_t *config);


kube_rc_t
ngx_kube_kubeconfig_read(const ngx_kube_informer_t *block,
    kube_config_t *config, kube_error_t *error)
{
    char  *context;

    context = block->context.len ? (char *) block->context.data : NULL;

    return kube_config_kubeconfig(config, (char *) block->kubeconfig.data,
                                  context, error);
}


void
ngx_kube_kubeconfig_what(u_char *what, size_t size, const kube_error_t *error)
{
    u_char  *p, *last;

    p = what;
    last = what + size;

    if (error->offset != 0) {
        p = ngx_slprintf(p, last, "line %uz: ", error->offset);
    }

    (void) ngx_cpystrn(p, (u_char *) (error->what ? error->what : ""),
                       last - p);
}


ngx_int_t
ngx_kube_kubeconfig_check(ngx_cycle_t *cycle, ngx_kube_informer_t *block)
{
    ngx_core_conf_t      *ccf;
    ngx_kube_verdict_t    verdict;
    ngx_kube_question_t   question;

    /* a signaller starts nothing: "nginx -s stop" needs no kubeconfig */

    if (block->kubeconfig.len == 0 || ngx_process == NGX_PROCESS_SIGNALLER) {
        return NGX_OK;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    question.block = block;
    question.ccf = ccf;

    if (ngx_kube_child_ask(ngx_kube_kubeconfig_child, &question, &verdict,
                           sizeof(ngx_kube_verdict_t))
        != NGX_OK)
    {
        ngx_log_error(NGX_LOG_WARN, cycle->log, ngx_errno,
                      "kubeconfig \"%V\" could not be checked now; the "
                      "informer process will say what is wrong with it",
                      &block->kubeconfig);
        return NGX_OK;
    }

    verdict.what[sizeof(verdict.what) - 1] = '\0';

    if (verdict.rc == KUBE_OK) {
        ngx_kube_kubeconfig_warn(cycle, block, &verdict);
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                  "kubeconfig \"%V\"%s%V%s%s%s%s: %s%s in %V:%ui",
                  &block->kubeconfig, block->context.len ? ", context \"" : "",
                  &block->context, block->context.len ? "\"" : "",
                  ccf->username ? ", read as user \"" : "",
                  ccf->username ? ccf->username : "",
                  ccf->username ? "\"" : "",
                  verdict.what,
                  verdict.denied && ccf->username ? NGX_KUBE_DENIED : "",
                  &block->file, block->api_line);

    return NGX_ERROR;
}


/* What is weak in a file that is good. */
static void
ngx_kube_kubeconfig_warn(ngx_cycle_t *cycle, const ngx_kube_informer_t *block,
    const ngx_kube_verdict_t *verdict)
{
    if (verdict->public) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "kubeconfig \"%V\" holds a token or a key, and may "
                      "be read by all users of this host: chmod o-r",
                      &block->kubeconfig);
    }

    if (verdict->unverified) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "kubeconfig \"%V\" has insecure-skip-tls-verify: "
                      "whoever can reach the network can read the token and "
                      "choose the endpoints; name a certificate-authority "
                      "instead", &block->kubeconfig);
    }
}


static void
ngx_kube_kubeconfig_child(void *data, void *answer)
{
    ngx_kube_question_t *question = data;
    ngx_kube_verdict_t  *verdict = answer;

    kube_error_t      error;
    kube_config_t     config;
    ngx_core_conf_t  *ccf;

    ccf = question->ccf;

    ngx_memzero(&error, sizeof(kube_error_t));
    kube_config_init(&config, &ngx_kube_alloc);

    if (geteuid() == 0
        && (setgid(ccf->group) == -1
            || initgroups(ccf->username, ccf->group) == -1
            || setuid(ccf->user) == -1))
    {
        verdict->rc = KUBE_IO;
        error.what = "cannot become that user";

    } else {
        verdict->rc = ngx_kube_kubeconfig_read(question->block, &config,
                                               &error);

        verdict->denied = verdict->rc == KUBE_IO
                          && access((char *) question->block->kubeconfig.data,
                                    R_OK) == -1
                          && ngx_errno == NGX_EACCES;

        verdict->public = verdict->rc == KUBE_OK
                          && ngx_kube_kubeconfig_public(question->block,
                                                        &config);

        verdict->unverified = verdict->rc == KUBE_OK && config.tls_verify_off;
    }

    if (verdict->rc != KUBE_OK && error.what != NULL) {
        ngx_kube_kubeconfig_what((u_char *) verdict->what,
                                 sizeof(verdict->what), &error);
    }

    kube_config_done(&config);
}


/* The files that it names are the informer's to judge: it reads them. */
static unsigned
ngx_kube_kubeconfig_public(const ngx_kube_informer_t *block,
    const kube_config_t *config)
{
    ngx_file_info_t  fi;

    return (config->token.data.len != 0 || config->key.data.len != 0)
           && ngx_file_info(block->kubeconfig.data, &fi) != NGX_FILE_ERROR
           && (ngx_file_access(&fi) & S_IROTH);
}
