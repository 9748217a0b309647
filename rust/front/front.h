#ifndef COUPLET_FRONT_H
#define COUPLET_FRONT_H
/* The C border of the Rust library: renders a Hugging Face chat template as transformers does. It bounds neither time
   nor memory and may be ended by the template, so only a worker process calls it (src/text/chat_template_worker.cpp).
   No call unwinds into C. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char* data; /* any bytes; null only where size is 0 */
  size_t size;
} couplet_front_bytes;

typedef struct {
  couplet_front_bytes source;          /* the template */
  couplet_front_bytes tool_use_source; /* the one for conversations with tools; empty: there is none */
  couplet_front_bytes bos, eos, unknown, separator, padding, classifier, mask; /* tokens' texts; empty: not defined */
  couplet_front_bytes conversation;               /* a JSON object: messages and what else the template may read */
  int64_t local_seconds; /* the local wall clock, in seconds since 1970-01-01 00:00 of that clock (strftime_now) */
} couplet_front_request;

/* Renders; 1: `*text` is the prompt, 0: it is a message of one line that says why there is none. UTF-8, not
   terminated, freed by couplet_front_free. The last template is kept compiled. */
int couplet_front_render(const couplet_front_request* request, couplet_front_bytes* text);
void couplet_front_free(couplet_front_bytes text);

#ifdef __cplusplus
}
#endif
#endif
