// One generation, from the click to its end: what the server said of it, kept in the order it came. A run tells whoever
// watches that it has changed, at most once a frame.

import {post, stream} from "./api.js";

const kFinish = {stop: "the model ended its turn", length: "the token limit or the context's end was reached"};

export class Run {
  // `plan`: {title, path, body, tokenize, kept}: where to ask and what, the /tokenize body of the prompt, and the tokens of
  // an earlier reply that this one goes on from.
  constructor(plan) {
    Object.assign(this, plan);
    this.kept ??= [];
    this.state = "waiting";
    this.prompt = [];       // {id, piece}
    this.tokens = [...this.kept];
    this.ledger = [];
    this.progress = undefined;  // {total, cache, processed}
    this.text = "";
    this.startedAt = performance.now();
    this.abort = new AbortController();
    this.watchers = new Set();
    this.frame = 0;
  }

  watch(call) {
    this.watchers.add(call);
    return () => this.watchers.delete(call);
  }

  changed() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      for (const call of this.watchers) call();
    });
  }

  get running() {
    return ["waiting", "prefill", "decode"].includes(this.state);
  }

  // The reply as it reads, what it goes on from included.
  get shownText() {
    return groups(this.kept).map(({text}) => text ?? "").join("") + this.text;
  }

  stop() {
    this.abort.abort();
  }

  async go() {
    this.tokenizePrompt();
    try {
      await stream(this.path, {...this.body, stream: true, stream_options: {include_usage: true}, return_progress: true, ledger: true,
                               timings: true}, (chunk) => this.take(chunk), this.abort.signal);
      this.state = "done";
    } catch (error) {
      this.state = error.name === "AbortError" ? "stopped" : "failed";
      this.problem = this.state === "stopped" ? "stopped by you" : error.message;
    }
    this.changed();
  }

  async tokenizePrompt() {
    try {
      this.prompt = (await post("/tokenize", {...this.tokenize, with_pieces: true})).tokens;
    } catch {
      this.prompt = [];  // the generation's own error says what is wrong
    }
    this.changed();
  }

  take(chunk) {
    if (chunk.prompt_progress) this.progress = chunk.prompt_progress;
    if (chunk.usage) this.usage = chunk.usage;
    if (chunk.timings) this.timings = chunk.timings;
    if (chunk.system_fingerprint) this.fingerprint = chunk.system_fingerprint;
    for (const choice of chunk.choices ?? []) {
      this.text += choice.delta?.content ?? choice.text ?? "";
      for (const entry of choice.ledger ?? []) this.note(entry);
      if (choice.finish_reason) {
        this.finish = choice.finish_reason;
        this.why = kFinish[choice.finish_reason] ?? choice.finish_reason;
      }
    }
    this.changed();
  }

  note(entry) {
    this.state = entry.stage;
    this.ledger.push(entry);
    if (entry.choice) this.tokens.push({...entry.choice, ms: entry.whole_step.ms, stage: entry.stage, step: this.ledger.length});
  }

  // The model's own probability of each prompt token, asked for when somebody first wants to know: [undefined, p, ...].
  async promptProbabilities() {
    this.probabilities ??= (async () => {
      const ids = this.prompt.map(({id}) => id);
      const reply = await post("/v1/completions", {model: this.body.model, prompt: ids, max_tokens: 0, echo: true, logprobs: 0});
      return reply.choices[0].logprobs.token_logprobs.map((value) => (value === null ? undefined : Math.exp(value)));
    })();
    return this.probabilities;
  }

  // The same prompt, the reply's tokens before number `index`, and then another one.
  continuedFrom(index, other) {
    const kept = [...this.tokens.slice(0, index).map((token) => ({...token, kept: true})), {...other, kept: true, picked: true}];
    const ids = [...this.prompt.map(({id}) => id), ...kept.map(({id}) => id)];
    const {messages, prompt, ...settings} = this.body;
    return new Run({title: this.title, path: "/v1/completions", body: {...settings, prompt: ids}, tokenize: this.tokenize, kept});
  }
}

// Tokens as they are read: a character that takes several tokens is one group of them.
export function groups(tokens) {
  const found = [];
  let open;
  for (const [index, token] of tokens.entries()) {
    const isPiece = Array.isArray(token.bytes) && token.bytes.length > 0;
    if (!isPiece) {
      open = undefined;
      found.push({text: token.text, indices: [index]});
      continue;
    }
    open ??= found[found.push({bytes: [], indices: []}) - 1];
    open.bytes.push(...token.bytes);
    open.indices.push(index);
    try {
      open.text = new TextDecoder("utf-8", {fatal: true}).decode(new Uint8Array(open.bytes));
      open = undefined;
    } catch {
      open.text = undefined;
    }
  }
  return found;
}
