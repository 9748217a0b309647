// The page: conversations, each reply with the story of its two stages under it.

import {render} from "preact";
import {useEffect, useReducer, useRef, useState} from "preact/hooks";
import {ApiError, get, setKey} from "./api.js";
import {ReplyTokens} from "./chips.jsx";
import {Run} from "./run.js";
import {Story} from "./story.jsx";
import "./style.css";

const runs = [];  // of all conversations, in the order they began

function useRun(run) {
  const [, again] = useReducer((count) => count + 1, 0);
  useEffect(() => run?.watch(again), [run]);
}

function useServer() {
  const [server, setServer] = useState({});
  const ask = async () => {
    try {
      const {data: [model]} = await get("/v1/models");
      setServer({model});
    } catch (error) {
      setServer({problem: error.message, wantsKey: error instanceof ApiError && error.status === 401});
    }
  };
  useEffect(() => void ask(), []);
  return [server, ask];
}

function App() {
  const [server, ask] = useServer();
  const [conversations, setConversations] = useState([{id: 1, turns: []}]);
  const [current, setCurrent] = useState(1);
  const add = () => {
    const id = conversations.length + 1;
    setConversations([...conversations, {id, turns: []}]);
    setCurrent(id);
  };
  const {model} = server;
  return (
    <>
      <header>
        <h1>couplet</h1>
        <p>{model ? <><b>{model.id}</b><span class="quiet">, {model.max_model_len.toLocaleString("en")} positions</span></> : <span class="quiet">…</span>}</p>
      </header>
      {server.problem && (server.wantsKey ? <KeyForm onKey={(key) => (setKey(key), ask())} /> : <p class="problem" role="alert">{server.problem} <button type="button" onClick={ask}>Try again</button></p>)}
      {model && (
        <>
          <nav aria-label="Conversations">
            {conversations.map(({id}) => (
              <button key={id} type="button" aria-current={id === current ? "page" : undefined} onClick={() => setCurrent(id)}>Conversation {id}</button>
            ))}
            <button type="button" onClick={add} title="Several at once share the engine's steps">New</button>
          </nav>
          {conversations.map((conversation) => (
            <main key={conversation.id} hidden={conversation.id !== current}>
              <Conversation conversation={conversation} model={model} />
            </main>
          ))}
        </>
      )}
    </>
  );
}

function KeyForm({onKey}) {
  const input = useRef();
  return (
    <form class="key" onSubmit={(event) => (event.preventDefault(), onKey(input.current.value))}>
      <label>This server wants an API key <input ref={input} type="password" autocomplete="off" required /></label>
      <button type="submit">Use it</button>
    </form>
  );
}

const kDefaults = {temperature: "", max_tokens: "256", seed: ""};

function Conversation({conversation, model}) {
  const [turns, setTurns] = useState(conversation.turns);
  const [settings, setSettings] = useState(kDefaults);
  const [draft, setDraft] = useState("");
  const hasTemplate = model.meta?.has_chat_template !== false;
  const last = turns.at(-1)?.run;
  useRun(last);

  const start = (run, kept) => {
    runs.push(run);
    setTurns([...kept, {user: run.title, run}]);
    run.go();
  };
  const send = () => {
    const text = draft;
    if (!text.trim() || last?.running) return;
    const body = {model: model.id};
    for (const [name, value] of Object.entries(settings)) if (value !== "") body[name] = Number(value);
    if (hasTemplate) {
      const messages = turns.flatMap(({user, run}) => [{role: "user", content: user}, {role: "assistant", content: run.shownText}]);
      messages.push({role: "user", content: text});
      start(new Run({title: text, path: "/v1/chat/completions", body: {...body, messages}, tokenize: {messages}}), turns);
    } else {
      start(new Run({title: text, path: "/v1/completions", body: {...body, prompt: text}, tokenize: {prompt: text}}), turns);
    }
    setDraft("");
  };
  return (
    <>
      <div class="turns" aria-live="off">
        {turns.length === 0 && <Welcome hasTemplate={hasTemplate} onTry={setDraft} />}
        {turns.map(({user, run}, index) => (
          <Turn key={index} user={user} run={run} machine={model.meta?.machine} isLast={index === turns.length - 1}
            onContinue={(next) => start(next, turns.slice(0, index))} />
        ))}
      </div>
      <form class="ask" onSubmit={(event) => (event.preventDefault(), send())}>
        <label class="hidden" for={`ask-${conversation.id}`}>{hasTemplate ? "Your message" : "A text to complete"}</label>
        <textarea id={`ask-${conversation.id}`} rows={2} value={draft} placeholder={hasTemplate ? "Your message" : "A text to complete"}
          onInput={(event) => setDraft(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && (event.preventDefault(), send())} />
        {last?.running ? <button type="button" class="main" onClick={() => last.stop()}>Stop</button>
          : <button type="submit" class="main" disabled={!draft.trim()}>Send</button>}
        <Settings settings={settings} onChange={setSettings} />
      </form>
    </>
  );
}

function Welcome({hasTemplate, onTry}) {
  const tries = hasTemplate ? ["Reply politely to this email: “Can we meet tomorrow?”", "Why is the sky blue?"] : ["The sun is very", "The capital of France is"];
  return (
    <div class="welcome">
      <p>An answer comes in two stages. <b class="prefill-word">Prefill</b> reads the whole prompt at once and ends in a probability for every token.
        <b class="decode-word"> Decode</b> adds one token at a time, each fed back. Under each reply stands what both of them did.</p>
      {tries.map((text) => <button key={text} type="button" onClick={() => onTry(text)}>{text}</button>)}
    </div>
  );
}

function Settings({settings, onChange}) {
  const field = (name, label, attributes) => (
    <label>{label} <input type="number" value={settings[name]} placeholder="default" {...attributes} onInput={(event) => onChange({...settings, [name]: event.target.value})} /></label>
  );
  return (
    <details class="settings">
      <summary>Settings</summary>
      <div>{field("temperature", "temperature", {min: 0, max: 2, step: 0.1})}{field("max_tokens", "most tokens", {min: 0, step: 1})}{field("seed", "seed", {step: 1})}</div>
    </details>
  );
}

function Turn({user, run, machine, isLast, onContinue}) {
  useRun(run);
  const [open, setOpen] = useState(true);
  const state = run.running ? {waiting: "waiting", prefill: "prefill", decode: "decode"}[run.state] : run.problem ?? run.why ?? "";
  return (
    <article aria-busy={run.running}>
      <p class="user"><span class="hidden">You: </span>{user}</p>
      <div class="reply"><ReplyTokens run={run} onContinue={onContinue} /></div>
      <p class={`state ${run.state}`} role="status">{run.running ? <><span class={`dot ${run.state}`} /> {state}</> : state}</p>
      <details open={open && isLast} onToggle={(event) => isLast && setOpen(event.currentTarget.open)}>
        <summary>What prefill and decode did</summary>
        <Story run={run} runs={runs} machine={machine} />
      </details>
    </article>
  );
}

render(<App />, document.getElementById("app"));
