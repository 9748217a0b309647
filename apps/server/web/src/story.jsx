// What the two stages did for one reply: the prefill bar, the comparison and the roofline, all from the run's ledger.

import {amount, milliseconds, percent, stageFigures} from "./figures.js";
import {PromptChips} from "./chips.jsx";
import {Timeline} from "./timeline.jsx";

export function Story({run, runs, machine}) {
  const prefill = stageFigures(run.ledger, "prefill"), decode = stageFigures(run.ledger, "decode");
  return (
    <div class="story">
      <h4>Prompt <span class="quiet">{run.prompt.length ? `${run.prompt.length} tokens` : ""}</span></h4>
      <PromptChips run={run} />
      <h4 class="prefill-word">Prefill <span class="quiet">all prompt positions at once, ending in a probability for every token</span></h4>
      <PrefillBar run={run} prefill={prefill} />
      <h4>Both stages, step by step</h4>
      <Timeline run={run} runs={runs} />
      {prefill.passes > 0 && (
        <>
          <h4>Side by side</h4>
          <Comparison run={run} prefill={prefill} decode={decode} />
          <Roofline machine={machine} stages={[prefill, decode].filter((stage) => stage.passes > 0)} />
        </>
      )}
    </div>
  );
}

function PrefillBar({run, prefill}) {
  const total = run.progress?.total ?? run.usage?.prompt_tokens ?? run.prompt.length;
  const cached = run.progress?.cache ?? prefill.cached;
  const done = run.state === "waiting" && prefill.passes === 0 ? 0 : Math.min(total, run.progress?.processed ?? cached + prefill.tokens);
  const share = (count) => (total > 0 ? `${(100 * count) / total}%` : "0%");
  const said = prefill.passes === 0 ? "waiting for its turn"
    : `${done.toLocaleString("en")} of ${total.toLocaleString("en")} positions${cached ? `, ${cached.toLocaleString("en")} of them from the cache` : ""}, in ${prefill.passes === 1 ? "one pass" : `${prefill.passes} passes`}, ${milliseconds(prefill.ms)}`;
  return (
    <>
      <div class="progress" role="progressbar" aria-label="Prefill" aria-valuemin="0" aria-valuemax={total} aria-valuenow={done} aria-valuetext={said}>
        <span class="from-cache" style={{width: share(Math.min(cached, done))}} />
        <span class="computed" style={{width: share(Math.max(0, done - cached))}} />
      </div>
      <p class="detail">{said}</p>
    </>
  );
}

function Comparison({run, prefill, decode}) {
  const none = "–";
  const of = (stage, text) => (stage.passes > 0 ? text(stage) : none);
  const saved = prefill.cached > 0 && prefill.tokens > 0 ? ` about ${milliseconds((prefill.cached * prefill.ms) / prefill.tokens)} at the pace of the rest` : "";
  const rows = [
    ["what is known", () => "the whole prompt", () => "the prompt, the reply so far"],
    ["tokens / passes", (s) => `${s.tokens} / ${s.passes}`, (s) => `${s.tokens} / ${s.passes}`],
    ["time in steps", (s) => milliseconds(s.ms), (s) => `${milliseconds(s.ms)}, ${milliseconds(s.ms / s.passes)} a token`],
    ["tokens a second", (s) => amount(s.tokensPerSecond), (s) => amount(s.tokensPerSecond)],
    ["bytes a token", (s) => amount(s.bytesPerToken, "B"), (s) => amount(s.bytesPerToken, "B")],
    ["operations a byte", (s) => s.intensity.toFixed(1), (s) => s.intensity.toFixed(1)],
    ["bound by", (s) => bound(s), (s) => bound(s)],
    ["steps shared with others", (s) => `${s.shared}`, (s) => `${s.shared}`],
    ["from the cache", (s) => (s.cached ? `${s.cached} tokens,${saved}` : "nothing"), (s) => "all positions before, each step"],
  ];
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="The stages side by side">
      <table>
        <thead><tr><td /><th scope="col" class="prefill-word">prefill</th><th scope="col" class="decode-word">decode</th></tr></thead>
        <tbody>
          {rows.map(([name, left, right]) => (
            <tr key={name}><th scope="row">{name}</th><td>{of(prefill, left)}</td><td>{of(decode, right)}</td></tr>
          ))}
        </tbody>
        {run.timings && (
          <tfoot>
            <tr><th scope="row">first token after</th><td colSpan={2}>{milliseconds(run.timings.ttft_ms)}, {milliseconds(run.timings.queue_ms)} of it in the queue</td></tr>
          </tfoot>
        )}
      </table>
    </div>
  );
}

function bound(stage) {
  if (!stage.ofCompute && !stage.ofMemory) return "not measured";
  const share = stage.boundBy === "arithmetic" ? stage.ofCompute : stage.ofMemory;
  return share > 1 ? `${stage.boundBy}, above the limit that a busier machine showed at the start` : `${stage.boundBy}, ${percent(share)} of its limit`;
}

// Both axes are logarithmic: operations a byte to the right, operations a second upwards.
function Roofline({machine, stages}) {
  if (!machine?.int8_operations_per_s) return null;
  const {int8_operations_per_s: peak, read_bytes_per_s: reading} = machine;
  const width = 480, height = 220, left = 58, right = 12, top = 14, bottom = 34;
  const ridge = peak / reading;
  const xs = [0.5, ...stages.map((s) => s.intensity), ridge], ys = [peak, ...stages.map((s) => s.operationsPerSecond)];
  const span = (values, pad) => [Math.log10(Math.min(...values)) - pad, Math.log10(Math.max(...values)) + pad];
  const [x0, x1] = span(xs, 0.3), [y0, y1] = span([...ys, peak / 1000], 0.15);
  const x = (value) => left + ((Math.log10(value) - x0) / (x1 - x0)) * (width - left - right);
  const y = (value) => height - bottom - ((Math.log10(value) - y0) / (y1 - y0)) * (height - top - bottom);
  const ticks = (from, to) => Array.from({length: Math.floor(to) - Math.ceil(from) + 1}, (_, i) => 10 ** (Math.ceil(from) + i));
  const start = Math.max(10 ** x0, 10 ** y0 / reading), end = 10 ** x1;
  const said = stages.map((s) => `${s.stage}: ${s.intensity.toFixed(1)} operations a byte, ${amount(s.operationsPerSecond)} operations a second, bound by ${s.boundBy}`).join("; ");
  return (
    <figure>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Roofline. ${said}. The machine: ${amount(peak)} operations and ${amount(reading)} bytes a second.`}>
        {ticks(x0, x1).map((value) => (
          <g key={`x${value}`} class="tick"><line x1={x(value)} x2={x(value)} y1={top} y2={height - bottom} /><text x={x(value)} y={height - bottom + 14} text-anchor="middle">{amount(value)}</text></g>
        ))}
        {ticks(y0, y1).map((value) => (
          <g key={`y${value}`} class="tick"><line x1={left} x2={width - right} y1={y(value)} y2={y(value)} /><text x={left - 6} y={y(value) + 4} text-anchor="end">{amount(value)}</text></g>
        ))}
        <text class="axis" x={(left + width) / 2} y={height - 4} text-anchor="middle">operations a byte</text>
        <text class="axis" x={-(height - bottom) / 2} y={11} text-anchor="middle" transform="rotate(-90)">operations a second</text>
        <polyline class="roof" points={`${x(start)},${y(start * reading)} ${x(ridge)},${y(peak)} ${x(end)},${y(peak)}`} />
        {stages.map((s) => (
          <g key={s.stage} class={`point ${s.stage}`}>
            <circle cx={x(s.intensity)} cy={y(s.operationsPerSecond)} r={6} />
            <text x={x(s.intensity) + (x(s.intensity) > width - 110 ? -11 : 11)} y={y(s.operationsPerSecond) + 4} text-anchor={x(s.intensity) > width - 110 ? "end" : "start"}>{s.stage}</text>
          </g>
        ))}
      </svg>
      <figcaption>Left of the bend memory is the limit ({amount(reading, "B/s")}), right of it arithmetic ({amount(peak)} operations a second); both were measured when the server started.</figcaption>
    </figure>
  );
}
