// Tokens that can be looked into: those of the prompt, and those of the reply with what else the model thought of.

import {useEffect, useId, useRef, useState} from "preact/hooks";
import {percent, probability, visible} from "./figures.js";
import {groups} from "./run.js";

const kFirstChips = 160;

// How sure the model was, in five classes that styles give a colour to; the figure itself is in the label.
export const surety = (p) => (p === undefined ? "none" : p >= 0.8 ? "5" : p >= 0.5 ? "4" : p >= 0.25 ? "3" : p >= 0.1 ? "2" : "1");

// One tab stop for a row of buttons; arrows move in it.
function useRoving() {
  const row = useRef();
  const onKeyDown = (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step || !row.current) return;
    const buttons = [...row.current.querySelectorAll("[data-roving]")];
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  return {ref: row, onKeyDown};
}

function useDismiss(close) {
  useEffect(() => {
    const onKey = (event) => event.key === "Escape" && close();
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [close]);
}

export function PromptChips({run}) {
  const [chosen, choose] = useState();
  const [all, showAll] = useState(false);
  const [probabilities, setProbabilities] = useState();
  const [problem, setProblem] = useState();
  const roving = useRoving();
  const cached = run.progress?.cache ?? run.ledger[0]?.cached_tokens ?? 0;
  const shown = all ? run.prompt : run.prompt.slice(0, kFirstChips);
  const wants = chosen !== undefined && !run.running;
  useEffect(() => {
    if (wants && !probabilities) run.promptProbabilities().then(setProbabilities, (error) => setProblem(error.message));
  }, [wants]);
  if (run.prompt.length === 0) return <p class="quiet">Reading the prompt …</p>;
  const token = run.prompt[chosen];
  return (
    <>
      <div class="chips" role="group" aria-label={`${run.prompt.length} prompt tokens`} {...roving}>
        {shown.map((each, index) => (
          <button key={index} type="button" data-roving tabIndex={index === (chosen ?? 0) ? 0 : -1}
            class={`chip ${index < cached ? "cached" : ""} ${index === chosen ? "chosen" : ""}`}
            aria-label={`prompt token ${index + 1}, ${pieceText(each)}, id ${each.id}${index < cached ? ", from the cache" : ""}`}
            onFocus={() => choose(index)} onMouseEnter={() => choose(index)}>
            {visible(pieceText(each), pieceBytes(each))}
          </button>
        ))}
        {!all && run.prompt.length > kFirstChips && (
          <button type="button" class="more" onClick={() => showAll(true)}>{run.prompt.length - kFirstChips} more</button>
        )}
      </div>
      <p class="detail" aria-live="polite">
        {token === undefined ? <span class="quiet">Point at a token, or move to it with Tab and the arrows.</span> : (
          <>
            <b>{visible(pieceText(token), pieceBytes(token))}</b> id {token.id}, {byteList(token)}
            {chosen === 0 ? ", the first: nothing comes before it" : problem ? `, ${problem}` :
              probabilities ? `, probability ${percent(probabilities[chosen] ?? 0)} after what comes before it` :
              run.running ? ", its probability can be asked for once the reply stands" : ", asking for its probability …"}
          </>
        )}
      </p>
    </>
  );
}

const pieceText = ({piece}) => (typeof piece === "string" ? piece : "\uFFFD");
const pieceBytes = ({piece}) => (typeof piece === "string" ? [...new TextEncoder().encode(piece)] : piece);
const byteList = (token) => `bytes ${pieceBytes(token).map((byte) => byte.toString(16).padStart(2, "0")).join(" ")}`;

export function ReplyTokens({run, onContinue}) {
  const [chosen, choose] = useState();
  const roving = useRoving();
  useDismiss(() => choose(undefined));
  const found = groups(run.tokens);
  const group = found.find(({indices}) => indices[0] === chosen);
  const toggle = (index) => choose(index === chosen ? undefined : index);
  const onKey = (event, index) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    toggle(index);
  };
  return (
    <div class="reply-tokens">
      <div class="text" role="group" aria-label="The reply, a button a token" {...roving}>
        {found.map(({text, indices}) => {
          const token = run.tokens[indices.at(-1)];
          const p = probability(run.tokens[indices[0]].logprob);
          const isEnd = run.finish === "stop" && indices.at(-1) === run.tokens.length - 1 && !run.text.endsWith(text ?? "\0");
          const label = isEnd ? "end of the turn" : visible(text ?? "", token.bytes);
          return (
            <span key={indices[0]} role="button" data-roving tabIndex={indices[0] === (chosen ?? 0) ? 0 : -1}
              class={`token p${surety(p)} ${token.kept ? "kept" : ""} ${token.picked ? "picked" : ""} ${isEnd ? "end" : ""} ${indices[0] === chosen ? "chosen" : ""}`}
              aria-label={`${label}${p === undefined ? "" : `, ${percent(p)}`}`} aria-expanded={indices[0] === chosen}
              title={p === undefined ? undefined : percent(p)} onClick={() => toggle(indices[0])} onKeyDown={(event) => onKey(event, indices[0])}>
              {isEnd ? "end" : text ?? visible("", token.bytes)}
            </span>
          );
        })}
        {run.running && <span class="caret" aria-hidden="true" />}
      </div>
      {group && <Alternatives run={run} indices={group.indices} onContinue={onContinue} close={() => choose(undefined)} />}
    </div>
  );
}

function Alternatives({run, indices, onContinue, close}) {
  const heading = useId();
  const index = indices[0];
  const token = run.tokens[index];
  const top = token.top ?? [];
  const others = top.some(({id}) => id === token.id) ? top : [...top, token];
  const rest = 1 - others.reduce((total, {logprob}) => total + (probability(logprob) ?? 0), 0);
  return (
    <section class="alternatives" aria-labelledby={heading}>
      <h4 id={heading}>
        {visible(token.text ?? "", token.bytes)} <span class="quiet">id {token.id}{indices.length > 1 ? `, and ${indices.length - 1} more for this character` : ""}
          {token.how ? `, ${how(token)}` : ""}{token.ms === undefined ? "" : `, ${token.ms.toFixed(1)} ms`}</span>
        <button type="button" class="close" aria-label="Close" onClick={close}>×</button>
      </h4>
      {others.length > 1 && (
        <ul>
          {others.map((other) => {
            const p = probability(other.logprob) ?? 0;
            const isTaken = other.id === token.id;
            return (
              <li key={other.id}>
                <button type="button" disabled={isTaken || run.running || run.prompt.length === 0} onClick={() => onContinue(run.continuedFrom(index, other))}
                  aria-label={`${visible(other.text, other.bytes)}, ${percent(p)}${isTaken ? ", taken" : ", continue from here with it"}`}>
                  <span class="word">{visible(other.text, other.bytes)}</span>
                  <span class="bar"><span style={{width: `${Math.max(0.5, 100 * p)}%`}} class={isTaken ? "taken" : ""} /></span>
                  <span class="share">{percent(p)}</span>
                </button>
              </li>
            );
          })}
        </ul>
      )}
      {others.length > 1 && <p class="quiet">All other tokens: {percent(Math.max(0, rest))}
        {token.entropy_bits === undefined ? "" : `, entropy ${token.entropy_bits.toFixed(1)} bits`}. {run.running ? "Once the reply stands, a click continues with another choice." : "A click continues with another choice."}</p>}
    </section>
  );
}

function how(token) {
  if (token.how === "greedy") return "the best one";
  if (token.how === "forced") return "given";
  return token.num_kept === undefined ? "drawn" : `drawn from ${token.num_kept.toLocaleString("en")}`;
}
